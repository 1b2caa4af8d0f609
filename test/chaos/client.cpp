/*
 * client.cpp
 *     A client that draws IDs for as long as it lives, whatever happens to its
 *     server, and writes down each one that reached it.
 *
 *     client CONNINFO FILE SEED
 *
 * Each line of the file is a time (monotonic, in us) and an ID. An ID counts as
 * soon as the server has sent it: whether its transaction commits, is rolled back
 * or dies with the server makes no difference. Ends at SIGTERM.
 */
#include <libpq-fe.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

namespace {

volatile std::sig_atomic_t stopped = 0;

void on_signal(int) { stopped = 1; }

long long monotonic_us()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

void pause_briefly()
{
    const timespec length{0, 20000000};
    nanosleep(&length, nullptr);
}

/* What clients do, by how often they do it. */
struct Work {
    unsigned weight;
    const char *statements[3];
};

constexpr Work kWork[] = {
    {50, {"INSERT INTO chaos DEFAULT VALUES RETURNING id"}},
    {15, {"INSERT INTO chaos (n) SELECT n FROM generate_series(1, 50) n RETURNING id"}},
    {15, {"SELECT snowflake_nextvals(200)"}},
    {10, {"BEGIN", "INSERT INTO chaos DEFAULT VALUES RETURNING id", "COMMIT"}},
    {10, {"BEGIN", "INSERT INTO chaos DEFAULT VALUES RETURNING id", "ROLLBACK"}},
};

const Work &choose(std::mt19937_64 &random)
{
    unsigned total = 0;
    for (const Work &work : kWork) {
        total += work.weight;
    }
    unsigned ticket = static_cast<unsigned>(random() % total);
    for (const Work &work : kWork) {
        if (ticket < work.weight) {
            return work;
        }
        ticket -= work.weight;
    }
    return kWork[0];
}

/* False if the connection is of no use any longer. */
bool run(PGconn *connection, const char *statement, std::FILE *file)
{
    PGresult *result = PQexec(connection, statement);
    const long long now = monotonic_us();
    for (int row = 0; PQresultStatus(result) == PGRES_TUPLES_OK && row < PQntuples(result); row++) {
        std::fprintf(file, "%lld %s\n", now, PQgetvalue(result, row, 0));
    }
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        std::fprintf(stderr, "%lld %s", now, PQerrorMessage(connection));
    }
    PQclear(result);
    return PQstatus(connection) == CONNECTION_OK;
}

/* Works on one connection until it is lost, or for a while. */
void work_on(PGconn *connection, std::mt19937_64 &random, std::FILE *file)
{
    for (unsigned left = 20 + random() % 500; left > 0 && stopped == 0; left--) {
        const Work &work = choose(random);
        for (const char *statement : work.statements) {
            if (statement != nullptr && !run(connection, statement, file)) {
                return;
            }
        }
        if (PQtransactionStatus(connection) != PQTRANS_IDLE) {
            run(connection, "ROLLBACK", file);
        }
    }
}

} /* namespace */

int main(int argc, char **argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: client CONNINFO FILE SEED\n");
        return 2;
    }
    std::FILE *file = std::fopen(argv[2], "a");
    if (file == nullptr) {
        std::perror(argv[2]);
        return 2;
    }
    std::setvbuf(file, nullptr, _IOLBF, 1 << 16);
    std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);

    while (stopped == 0) {
        PGconn *connection = PQconnectdb(argv[1]);
        if (PQstatus(connection) == CONNECTION_OK) {
            work_on(connection, random, file);
        } else {
            pause_briefly();
        }
        PQfinish(connection);
    }
    return std::fclose(file) == 0 ? 0 : 1;
}
