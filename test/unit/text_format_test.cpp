/*
 * text_format_test.cpp
 *     IDs as text: base 62, base 36 and the friendly form.
 */
#include "core/text_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "core/layout_spec.h"
#include "random_layouts.h"
#include "vectors.h"

namespace snowflake {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr int kRounds = 20000;
constexpr Radix kRadixes[] = {Radix::Base36, Radix::Base62};

std::string spelled(std::int64_t id, Radix radix)
{
    return std::string(format_radix(id, radix).view());
}

std::string padded(const std::string &text, Radix radix)
{
    return std::string(radix_width(radix) - text.size(), '0') + text;
}

TEST(RadixTest, WidthsHoldTheGreatestId)
{
    EXPECT_EQ(radix_width(Radix::Base62), 11u);
    EXPECT_EQ(radix_width(Radix::Base36), 13u);
    EXPECT_EQ(spelled(kMax, Radix::Base62), "AzL8n0Y58m7");
    EXPECT_EQ(spelled(kMax, Radix::Base36), "1Y2P0IJ32E8E7");
    EXPECT_EQ(spelled(0, Radix::Base62), "00000000000");
}

TEST(RadixTest, KnownTextsHaveTheirKnownValues)
{
    for (const auto &row : read_vectors("radix.tsv")) {
        ASSERT_EQ(row.size(), 3u);
        const Radix radix = row[0] == "62" ? Radix::Base62 : Radix::Base36;
        SCOPED_TRACE(row[0] + " " + row[1]);
        const ParsedRadix parsed = parse_radix(row[1], radix);
        if (row[2] == "!") {
            EXPECT_FALSE(parsed.ok());
            continue;
        }
        ASSERT_TRUE(parsed.ok());
        EXPECT_EQ(std::to_string(parsed.id), row[2]);
        EXPECT_EQ(spelled(parsed.id, radix), padded(row[1], radix));
    }
}

TEST(RadixTest, TextsComeBackAndSortLikeTheIds)
{
    Random random;
    SCOPED_TRACE(random.seed());
    for (const Radix radix : kRadixes) {
        for (int round = 0; round < kRounds; ++round) {
            const std::int64_t a = random.up_to(kMax);
            const std::int64_t b = random.in(0, 3) == 0 ? a : random.up_to(kMax);
            const std::string text_a = spelled(a, radix);
            const std::string text_b = spelled(b, radix);
            ASSERT_EQ(text_a.size(), radix_width(radix));
            ASSERT_EQ(a < b, text_a < text_b) << a << " " << b;
            ASSERT_EQ(a == b, text_a == text_b) << a << " " << b;

            const ParsedRadix parsed = parse_radix(text_a, radix);
            ASSERT_TRUE(parsed.ok()) << text_a;
            ASSERT_EQ(parsed.id, a);
            const std::size_t zeros = text_a.find_first_not_of('0');
            if (zeros != std::string::npos) {
                ASSERT_EQ(parse_radix(text_a.substr(zeros), radix).id, a) << "without its zeros";
            }
        }
    }
}

TEST(RadixTest, WhatIsNotAnIdIsRefused)
{
    const auto problem = [](const std::string &text, Radix radix) {
        return parse_radix(text, radix).problem;
    };
    for (const Radix radix : kRadixes) {
        EXPECT_EQ(problem("", radix), RadixProblem::Empty);
        EXPECT_EQ(problem("-1", radix), RadixProblem::BadDigit);
        EXPECT_EQ(problem("+1", radix), RadixProblem::BadDigit);
        EXPECT_EQ(problem(" 1", radix), RadixProblem::BadDigit);
        EXPECT_EQ(problem("1 ", radix), RadixProblem::BadDigit);
        EXPECT_EQ(problem("1_0", radix), RadixProblem::BadDigit);
        EXPECT_EQ(problem(std::string("1\0", 2), radix), RadixProblem::BadDigit);
        EXPECT_EQ(problem("\xC3\xA9", radix), RadixProblem::BadDigit);
        EXPECT_EQ(problem(std::string(radix_width(radix) + 1, '0'), radix), RadixProblem::TooLong);
        EXPECT_EQ(problem(std::string(1000, 'Z'), radix), RadixProblem::TooLong);
        EXPECT_EQ(problem(std::string(radix_width(radix), 'Z'), radix), RadixProblem::OutOfRange);
    }
    EXPECT_EQ(problem("AzL8n0Y58m8", Radix::Base62), RadixProblem::OutOfRange);
    EXPECT_EQ(problem("zzzzzzzzzzz", Radix::Base62), RadixProblem::OutOfRange);
    EXPECT_EQ(problem("1Y2P0IJ32E8E8", Radix::Base36), RadixProblem::OutOfRange);
    EXPECT_EQ(problem("z", Radix::Base36), RadixProblem::BadDigit) << "no small letters in base 36";
    EXPECT_EQ(parse_radix("12-4", Radix::Base62).position, 2u);
}

Layout layout_of(Unit unit) { return make_layout(0, unit, 41, 10, 12); }

std::string friendly(const Friendly &value, Unit unit)
{
    return std::string(format_friendly(value, unit).view());
}

TEST(FriendlyTest, TimeIsWrittenAsFinelyAsTheUnit)
{
    const Friendly value = {{2021, 6, 23, 13, 17, 30, 190}, 1, 0};
    EXPECT_EQ(friendly(value, Unit::Millisecond), "20210623131730190-1-0");
    EXPECT_EQ(friendly(value, Unit::Centisecond), "2021062313173019-1-0");
    EXPECT_EQ(friendly(value, Unit::Second), "20210623131730-1-0");
}

TEST(FriendlyTest, YearsHaveFourDigits)
{
    EXPECT_EQ(friendly({{33, 1, 2, 3, 4, 5, 6}, 0, 7}, Unit::Millisecond), "00330102030405006-0-7");
    EXPECT_EQ(
        friendly({{9999, 12, 31, 23, 59, 59, 999}, 2147483647, 2147483647}, Unit::Millisecond),
        "99991231235959999-2147483647-2147483647")
        << "the longest there is";
}

TEST(FriendlyTest, ATextOfAnotherUnitIsRefused)
{
    const char *of_ms = "20260110101010101-1-0";
    EXPECT_TRUE(parse_friendly(of_ms, layout_of(Unit::Millisecond)).ok());
    EXPECT_EQ(parse_friendly(of_ms, layout_of(Unit::Centisecond)).problem,
              FriendlyProblem::BadShape);
    EXPECT_EQ(parse_friendly(of_ms, layout_of(Unit::Second)).problem, FriendlyProblem::BadShape);
    EXPECT_TRUE(parse_friendly("20260110101010-1-0", layout_of(Unit::Second)).ok());
    EXPECT_TRUE(parse_friendly("2026011010101010-1-0", layout_of(Unit::Centisecond)).ok());
}

TEST(FriendlyTest, TextsComeBack)
{
    Random random;
    SCOPED_TRACE(random.seed());
    for (int round = 0; round < kRounds; ++round) {
        const Layout layout = random.layout();
        SCOPED_TRACE(format_layout(layout).c_str());
        const Parts parts = random.parts(layout);
        const CivilTime time = civil_time_of(layout.to_unix_ms(parts.timestamp));
        if (time.year > kLastFriendlyYear) {
            continue;
        }
        const FriendlyText text =
            format_friendly({time, parts.machine_id, parts.sequence}, layout.unit);
        const ParsedFriendly parsed = parse_friendly(text.view(), layout);
        ASSERT_TRUE(parsed.ok()) << text.c_str();
        ASSERT_EQ(parsed.friendly.time, time) << text.c_str();
        ASSERT_EQ(layout.from_unix_ms(unix_ms_of(parsed.friendly.time)), parts.timestamp);
        ASSERT_EQ(parsed.friendly.machine_id, parts.machine_id);
        ASSERT_EQ(parsed.friendly.sequence, parts.sequence);
    }
}

TEST(FriendlyTest, AnErrorPointsAtThePartThatIsWrong)
{
    struct Case {
        const char *text;
        FriendlyProblem problem;
        const char *where;
    };
    const Case cases[] = {
        {"", FriendlyProblem::BadShape, ""},
        {"20210623131730192", FriendlyProblem::BadShape, ""},
        {"20210623131730192-1", FriendlyProblem::BadShape, ""},
        {"20210623131730192--0", FriendlyProblem::BadShape, "-0"},
        {"20210623131730192-1-", FriendlyProblem::BadShape, ""},
        {"-1-0", FriendlyProblem::BadShape, "-1-0"},
        {"--", FriendlyProblem::BadShape, "--"},
        {"20210623131730192-1-0-", FriendlyProblem::BadShape, "-"},
        {"20210623131730192-1-0-0", FriendlyProblem::BadShape, "-0"},
        {"20210623131730192-1-0 ", FriendlyProblem::BadShape, " "},
        {" 20210623131730192-1-0", FriendlyProblem::BadShape, " 20210623131730192-1-0"},
        {"20210623131730192 -1-0", FriendlyProblem::BadShape, " -1-0"},
        {"20210623131730192-+1-0", FriendlyProblem::BadShape, "+1-0"},
        {"20210623131730192-1--1", FriendlyProblem::BadShape, "-1"},
        {"20210623131730192-01-0", FriendlyProblem::BadShape, "01"},
        {"20210623131730192-1-00", FriendlyProblem::BadShape, "00"},
        {"2021062313173019-1-0", FriendlyProblem::BadShape, "2021062313173019"},
        {"020210623131730192-1-0", FriendlyProblem::BadShape, "020210623131730192"},
        {"120210623131730192-1-0", FriendlyProblem::BadShape, "120210623131730192"},
        {"20210623T131730192-1-0", FriendlyProblem::BadShape, "T131730192-1-0"},
        {"20210023131730192-1-0", FriendlyProblem::BadTime, "20210023131730192"},
        {"20211323131730192-1-0", FriendlyProblem::BadTime, "20211323131730192"},
        {"20210600131730192-1-0", FriendlyProblem::BadTime, "20210600131730192"},
        {"20210631131730192-1-0", FriendlyProblem::BadTime, "20210631131730192"},
        {"20210229131730192-1-0", FriendlyProblem::BadTime, "20210229131730192"},
        {"20210623241730192-1-0", FriendlyProblem::BadTime, "20210623241730192"},
        {"20210623136030192-1-0", FriendlyProblem::BadTime, "20210623136030192"},
        {"20210623131760192-1-0", FriendlyProblem::BadTime, "20210623131760192"},
        {"20210623131730192-1024-0", FriendlyProblem::BadMachineId, "1024"},
        {"20210623131730192-99999999999999999999-0", FriendlyProblem::BadMachineId,
         "99999999999999999999"},
        {"20210623131730192-1-4096", FriendlyProblem::BadSequence, "4096"},
        {"20210623131730192-1-18446744073709551616", FriendlyProblem::BadSequence,
         "18446744073709551616"},
    };
    const Layout layout = layout_of(Unit::Millisecond);
    ASSERT_TRUE(parse_friendly("20210623131730192-1023-4095", layout).ok());
    ASSERT_TRUE(parse_friendly("20200229235959999-0-0", layout).ok());
    for (const Case &each : cases) {
        const ParsedFriendly parsed = parse_friendly(each.text, layout);
        EXPECT_EQ(parsed.problem, each.problem) << each.text;
        EXPECT_EQ(parsed.where, each.where) << each.text;
    }
}

} /* namespace */
} /* namespace snowflake */
