/*
 * vectors.h
 *     The known answers in test/vectors: rows of columns with tabs between them.
 *     Tests run from the top of the checkout.
 */
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace snowflake {

/* The rows of a file, without comments. Fails the test if there are none. */
inline std::vector<std::vector<std::string>> read_vectors(const std::string &name)
{
    std::ifstream file("test/vectors/" + name);
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') {
            continue;
        }
        std::vector<std::string> columns;
        std::istringstream words(line);
        for (std::string column; std::getline(words, column, '\t');) {
            columns.push_back(column);
        }
        rows.push_back(columns);
    }
    EXPECT_FALSE(rows.empty()) << "no vectors in test/vectors/" << name;
    return rows;
}

} /* namespace snowflake */
