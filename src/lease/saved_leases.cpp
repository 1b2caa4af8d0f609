/*
 * saved_leases.cpp
 *     Leases that outlive a clean restart; see saved_leases.h.
 */
#include "lease/saved_leases.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>

extern "C" {
#include "common/file_perm.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
}

namespace snowflake {
namespace {

constexpr char kFile[] = "pg_stat/snowflake.leases";
constexpr std::uint32_t kFormat = 1;

/* What only this very file, in this run of the operating system, has. */
struct FileIdentity {
    std::uint64_t device_major;
    std::uint64_t device_minor;
    std::uint64_t inode;
    std::int64_t born_s;
    std::uint32_t born_ns;
    char boot[44];
};
static_assert(std::has_unique_object_representations_v<FileIdentity>, "compared byte by byte");

struct Header {
    std::uint32_t format;
    std::uint32_t count;
    FileIdentity identity;
    std::uint64_t instance;
};

/* False where the system cannot tell a file from its copy. */
bool identify(int fd, FileIdentity *identity)
{
    std::memset(identity, 0, sizeof(*identity));
#if defined(__linux__) && defined(STATX_BTIME)
    struct statx status;
    std::memset(&status, 0, sizeof(status));
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status) != 0 ||
        (status.stx_mask & STATX_BTIME) == 0) {
        return false;
    }
    identity->device_major = status.stx_dev_major;
    identity->device_minor = status.stx_dev_minor;
    identity->inode = status.stx_ino;
    identity->born_s = status.stx_btime.tv_sec;
    identity->born_ns = status.stx_btime.tv_nsec;

    const int boot = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (boot < 0) {
        return false;
    }
    const ssize_t length = read(boot, identity->boot, sizeof(identity->boot) - 1);
    close(boot);
    return length > 0;
#else
    return false;
#endif
}

pg_crc32c checksum(const Header &header, const SavedLease *leases)
{
    pg_crc32c crc;
    INIT_CRC32C(crc);
    COMP_CRC32C(crc, &header, sizeof(header));
    COMP_CRC32C(crc, leases, sizeof(SavedLease) * header.count);
    FIN_CRC32C(crc);
    return crc;
}

bool read_fully(int fd, void *to, std::size_t size)
{
    return read(fd, to, size) == static_cast<ssize_t>(size);
}

bool write_fully(int fd, const void *from, std::size_t size)
{
    return write(fd, from, size) == static_cast<ssize_t>(size);
}

/* True if the file is whole and is itself, not a copy. */
bool read_file(int fd, Header *header, SavedLease *leases)
{
    FileIdentity identity;
    pg_crc32c crc = 0;
    return identify(fd, &identity) && read_fully(fd, header, sizeof(*header)) &&
           header->format == kFormat && header->count <= kMaxSavedLeases &&
           std::memcmp(&header->identity, &identity, sizeof(identity)) == 0 &&
           read_fully(fd, leases, sizeof(SavedLease) * header->count) &&
           read_fully(fd, &crc, sizeof(crc)) && EQ_CRC32C(crc, checksum(*header, leases));
}

std::uint32_t collect(SharedState *state, SavedLease *leases)
{
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < kMaxLeases && count < kMaxSavedLeases; i++) {
        const LeaseRecord &record = state->records[i];
        if (record.status != LeaseStatus::Held || state->pools[record.pool].private_to != -1) {
            continue;
        }
        SavedLease &saved = leases[count++];
        std::memset(&saved, 0, sizeof(saved));
        saved.key = state->pools[record.pool].key;
        saved.machine_id = record.machine_id;
        saved.instance = state->instance;
        saved.next_tick = state->leases[i].word.load();
        saved.horizon = record.horizon;
    }
    return count;
}

} /* namespace */

void load_saved_leases(SharedState *state)
{
    const int fd = OpenTransientFile(kFile, O_RDONLY | PG_BINARY);
    if (fd < 0) {
        return;
    }
    Header header;
    const bool valid = read_file(fd, &header, state->saved);
    CloseTransientFile(fd);
    /* Before anything is believed: a crash must not make it be believed again. */
    const bool removed = durable_unlink(kFile, LOG) == 0;
    state->saved_count = valid && removed ? header.count : 0;
    if (!valid) {
        ereport(LOG, (errmsg("snowflake: saved leases are not used: the file \"%s\" is a copy, or "
                             "from before the system was started",
                             kFile)));
    }
}

void save_leases(SharedState *state)
{
    SavedLease *leases = state->saved;
    Header header;
    std::memset(&header, 0, sizeof(header));
    header.format = kFormat;
    header.count = collect(state, leases);
    header.instance = state->instance;
    if (header.count == 0) {
        return;
    }
    const int fd = OpenTransientFile(kFile, O_RDWR | O_CREAT | O_EXCL | PG_BINARY);
    if (fd < 0) {
        ereport(LOG, (errcode_for_file_access(),
                      errmsg("snowflake: could not create file \"%s\": %m", kFile)));
        return;
    }
    bool written = identify(fd, &header.identity);
    const pg_crc32c crc = checksum(header, leases);
    written = written && write_fully(fd, &header, sizeof(header)) &&
              write_fully(fd, leases, sizeof(SavedLease) * header.count) &&
              write_fully(fd, &crc, sizeof(crc)) && pg_fsync(fd) == 0;
    CloseTransientFile(fd);
    if (!written) {
        unlink(kFile);
    }
}

} /* namespace snowflake */
