/*
 * layout_spec_test.cpp
 *     Layouts as text: what is accepted, what is refused and where the finger
 *     points, and that the presets read other systems' IDs.
 */
#include "core/layout_spec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "core/civil_time.h"
#include "random_layouts.h"
#include "vectors.h"

namespace snowflake {
namespace {

constexpr int kRounds = 20000;

/* A preset's name or a spec, as in an SQL function's layout argument. */
Layout layout_named(const std::string &text)
{
    const Preset *preset = find_preset(std::string_view(text));
    if (preset != nullptr) {
        return preset->layout;
    }
    const ParsedSpec parsed = parse_layout(text);
    EXPECT_TRUE(parsed.ok()) << text << ": " << explain(parsed.problem);
    return parsed.layout;
}

std::string iso_time(std::int64_t unix_ms)
{
    /* a layout with that epoch spells it */
    const Layout layout = make_layout(unix_ms, Unit::Millisecond, 41, 10, 12);
    const std::string spec(format_layout(layout).view());
    return spec.substr(6, spec.find(' ') - 6);
}

TEST(LayoutSpecTest, WordsStandInAnyOrder)
{
    const Layout layout = layout_named("epoch=2024-01-01T00:00:00Z unit=ms fields=t41,m10,s12");
    EXPECT_EQ(layout.epoch_ms, 1704067200000);
    EXPECT_EQ(layout.unit, Unit::Millisecond);
    EXPECT_TRUE(layout == layout_named("fields=t41,m10,s12 epoch=2024-01-01T00:00:00Z unit=ms"));
    EXPECT_TRUE(layout ==
                layout_named("  unit=ms\tfields=t41,m10,s12\n epoch=2024-01-01T00:00:00Z "));
}

TEST(LayoutSpecTest, FieldsStandFromTheHighBitsDown)
{
    const Layout layout = layout_named("epoch=2014-09-01T00:00:00Z unit=10ms fields=s8,t39,m16");
    EXPECT_EQ(layout.unit, Unit::Centisecond);
    EXPECT_EQ(layout.sequence.shift, 55);
    EXPECT_EQ(layout.sequence.bits, 8);
    EXPECT_EQ(layout.timestamp.shift, 16);
    EXPECT_EQ(layout.timestamp.bits, 39);
    EXPECT_EQ(layout.machine_id.shift, 0);
    EXPECT_EQ(layout.machine_id.bits, 16);
}

TEST(LayoutSpecTest, AnEpochMayHaveDecimalsAndAnOffset)
{
    const auto epoch = [](const std::string &text) {
        return layout_named("epoch=" + text + " unit=ms fields=t41,m10,s12").epoch_ms;
    };
    EXPECT_EQ(epoch("2010-11-04T01:42:54.657Z"), 1288834974657);
    EXPECT_EQ(epoch("2010-11-04T01:42:54.6Z"), 1288834974600);
    EXPECT_EQ(epoch("2010-11-04T01:42:54.65Z"), 1288834974650);
    EXPECT_EQ(epoch("2016-05-20T00:00:00+08:00"), 1463673600000);
    EXPECT_EQ(epoch("2016-05-19T11:30:00-04:30"), 1463673600000);
    EXPECT_EQ(epoch("1970-01-01T00:00:00-00:00"), 0);
    EXPECT_EQ(epoch("1969-12-31T23:59:59.999Z"), -1);
    EXPECT_EQ(epoch("2024-02-29T00:00:00Z"), 1709164800000);
}

TEST(LayoutSpecTest, AnErrorPointsAtTheWordThatIsWrong)
{
    const std::string good_epoch = "epoch=2024-01-01T00:00:00Z";
    const std::string good = good_epoch + " unit=ms fields=t41,m10,s12";
    ASSERT_TRUE(parse_layout(good).ok());

    struct Case {
        std::string spec;
        SpecProblem problem;
        std::string where;
    };
    const Case cases[] = {
        {"", SpecProblem::MissingEpoch, ""},
        {"   ", SpecProblem::MissingEpoch, ""},
        {"default", SpecProblem::UnknownWord, "default"},
        {good + " colour=red", SpecProblem::UnknownWord, "colour=red"},
        {"Epoch=2024-01-01T00:00:00Z unit=ms fields=t41,m10,s12", SpecProblem::UnknownWord,
         "Epoch=2024-01-01T00:00:00Z"},
        {good_epoch + " unit = ms fields=t41,m10,s12", SpecProblem::UnknownWord, "unit"},
        {good + " unit=ms", SpecProblem::RepeatedWord, "unit=ms"},
        {good + " fields=t1,m1,s1", SpecProblem::RepeatedWord, "fields=t1,m1,s1"},
        {"unit=ms fields=t41,m10,s12", SpecProblem::MissingEpoch, ""},
        {good_epoch + " fields=t41,m10,s12", SpecProblem::MissingUnit, ""},
        {good_epoch + " unit=ms", SpecProblem::MissingFields, ""},

        {"epoch=2024-01-01 unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch, "epoch=2024-01-01"},
        {"epoch= unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch, "epoch="},
        {"epoch=1704067200000 unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=1704067200000"},
        {"epoch=2024-01-01T00:00:00 unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2024-01-01T00:00:00"},
        {"epoch=2023-02-29T00:00:00Z unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2023-02-29T00:00:00Z"},
        {"epoch=2024-13-01T00:00:00Z unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2024-13-01T00:00:00Z"},
        {"epoch=2024-01-01T24:00:00Z unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2024-01-01T24:00:00Z"},
        {"epoch=2024-01-01T00:00:00.Z unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2024-01-01T00:00:00.Z"},
        {"epoch=2024-01-01T00:00:00.0001Z unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2024-01-01T00:00:00.0001Z"},
        {"epoch=2024-01-01T00:00:00+0800 unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2024-01-01T00:00:00+0800"},
        {"epoch=2024-01-01T00:00:00+16:00 unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2024-01-01T00:00:00+16:00"},
        {"epoch=2024-01-01T00:00:00Zulu unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=2024-01-01T00:00:00Zulu"},
        {"epoch=0000-01-01T00:00:00Z unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=0000-01-01T00:00:00Z"},
        {"epoch=0001-01-01T00:00:00+00:01 unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=0001-01-01T00:00:00+00:01"},
        {"epoch=9999-12-31T23:59:59-00:01 unit=ms fields=t41,m10,s12", SpecProblem::BadEpoch,
         "epoch=9999-12-31T23:59:59-00:01"},
        {"epoch=2010-11-04T01:42:54.657Z unit=s fields=t31,m10,s22", SpecProblem::EpochOffUnit,
         "epoch=2010-11-04T01:42:54.657Z"},
        {"epoch=1969-12-31T23:59:59.995Z unit=10ms fields=t39,s8,m16", SpecProblem::EpochOffUnit,
         "epoch=1969-12-31T23:59:59.995Z"},

        {good_epoch + " unit=us fields=t41,m10,s12", SpecProblem::BadUnit, "unit=us"},
        {good_epoch + " unit= fields=t41,m10,s12", SpecProblem::BadUnit, "unit="},
        {good_epoch + " unit=1000ms fields=t41,m10,s12", SpecProblem::BadUnit, "unit=1000ms"},

        {good_epoch + " unit=ms fields=", SpecProblem::BadField, "fields="},
        {good_epoch + " unit=ms fields=t41,m10,s12,", SpecProblem::BadField, "fields=t41,m10,s12,"},
        {good_epoch + " unit=ms fields=t41,,s12", SpecProblem::BadField, "fields=t41,,s12"},
        {good_epoch + " unit=ms fields=t41,m,s12", SpecProblem::BadField, "m"},
        {good_epoch + " unit=ms fields=t41,m-1,s12", SpecProblem::BadField, "m-1"},
        {good_epoch + " unit=ms fields=t41,m010,s12", SpecProblem::BadField, "m010"},
        {good_epoch + " unit=ms fields=t41,m01,s12", SpecProblem::BadField, "m01"},
        {good_epoch + " unit=ms fields=t41,x10,s12", SpecProblem::BadField, "x10"},
        {good_epoch + " unit=ms fields=41/10/12", SpecProblem::BadField, "41/10/12"},
        {good_epoch + " unit=ms fields=t41,m5,m5,s12", SpecProblem::RepeatedField, "m5"},
        {good_epoch + " unit=ms fields=t41,s12", SpecProblem::MissingField, "fields=t41,s12"},
        {good_epoch + " unit=ms fields=m10,s12", SpecProblem::MissingField, "fields=m10,s12"},
        {good_epoch + " unit=ms fields=t0,m10,s12", SpecProblem::NoTimestamp, "t0"},
        {good_epoch + " unit=ms fields=t64,m0,s0", SpecProblem::FieldTooWide, "t64"},
        {good_epoch + " unit=ms fields=t20,m32,s10", SpecProblem::FieldTooWide, "m32"},
        {good_epoch + " unit=ms fields=t20,m10,s32", SpecProblem::FieldTooWide, "s32"},
        {good_epoch + " unit=ms fields=t42,m10,s12", SpecProblem::TooManyBits,
         "fields=t42,m10,s12"},
    };
    for (const Case &each : cases) {
        const ParsedSpec parsed = parse_layout(each.spec);
        EXPECT_EQ(parsed.problem, each.problem) << each.spec << ": " << explain(parsed.problem);
        EXPECT_EQ(parsed.where, each.where) << each.spec;
        const std::string_view spec = each.spec;
        EXPECT_GE(parsed.where.data(), spec.data()) << each.spec;
        EXPECT_LE(parsed.where.data() + parsed.where.size(), spec.data() + spec.size())
            << each.spec;
    }
}

TEST(LayoutSpecTest, EveryProblemIsExplained)
{
    std::set<std::string> explanations;
    for (int problem = 0; problem <= static_cast<int>(SpecProblem::TooManyBits); ++problem) {
        const std::string text = explain(static_cast<SpecProblem>(problem));
        EXPECT_FALSE(text.empty()) << problem;
        EXPECT_EQ(text.back(), '.') << text;
        EXPECT_TRUE(explanations.insert(text).second) << "twice: " << text;
    }
}

TEST(LayoutSpecTest, AFormattedLayoutParsesToItself)
{
    Random random;
    SCOPED_TRACE(random.seed());
    for (int round = 0; round < kRounds; ++round) {
        const Layout layout = random.layout();
        const SpecText spec = format_layout(layout);
        const ParsedSpec parsed = parse_layout(spec.view());
        ASSERT_TRUE(parsed.ok()) << spec.c_str() << ": " << explain(parsed.problem);
        ASSERT_TRUE(parsed.layout == layout) << spec.c_str();
        ASSERT_EQ(format_layout(parsed.layout).view(), spec.view());
    }
}

TEST(LayoutSpecTest, TheCanonicalSpecIsInUtcWithEmptyFieldsLast)
{
    EXPECT_EQ(format_layout(kDefaultLayout).view(),
              "epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m10,s12");
    EXPECT_EQ(format_layout(layout_named("unit=s fields=m0,t28,s13 "
                                         "epoch=2016-05-20T00:00:00+08:00"))
                  .view(),
              "epoch=2016-05-19T16:00:00Z unit=s fields=t28,s13,m0");
    EXPECT_EQ(format_layout(layout_named("epoch=2010-11-04T01:42:54.650Z unit=10ms "
                                         "fields=s0,m0,t63"))
                  .view(),
              "epoch=2010-11-04T01:42:54.650Z unit=10ms fields=t63,m0,s0");
}

TEST(PresetTest, NamesAreUniqueAndFound)
{
    std::set<std::string_view> names;
    for (const Preset &preset : presets()) {
        EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
        EXPECT_EQ(find_preset(preset.name), &preset);
        EXPECT_FALSE(preset.source.empty()) << preset.name;
        ASSERT_NE(find_preset(preset.layout), nullptr);
        EXPECT_TRUE(find_preset(preset.layout)->layout == preset.layout);
    }
    EXPECT_EQ(find_preset(std::string_view("")), nullptr);
    EXPECT_EQ(find_preset(std::string_view("Default")), nullptr);
    EXPECT_EQ(find_preset(make_layout(1, Unit::Millisecond, 41, 10, 12)), nullptr);
}

TEST(PresetTest, EpochsAndFieldsAreThoseOfTheirSources)
{
    struct Case {
        const char *name;
        std::int64_t epoch_ms;
        const char *unit_and_fields;
        std::int64_t max_id;
    };
    constexpr std::int64_t kAllBits = 9223372036854775807;
    const Case cases[] = {
        {"default", 1767225600000, "unit=ms fields=t41,m10,s12", kAllBits},
        {"twitter", 1288834974657, "unit=ms fields=t41,m10,s12", kAllBits},
        {"discord", 1420070400000, "unit=ms fields=t41,m10,s12", kAllBits},
        {"cosid", 1577203200000, "unit=ms fields=t41,m10,s12", kAllBits},
        {"cosid_second", 1577203200000, "unit=s fields=t31,m10,s22", kAllBits},
        {"gokit", 1767225600000, "unit=ms fields=t41,m10,s12", kAllBits},
        {"voltro", 1704067200000, "unit=ms fields=t41,m10,s12", kAllBits},
        {"instagram", 1314220021721, "unit=ms fields=t40,m13,s10", kAllBits},
        {"mastodon", 0, "unit=ms fields=t47,s16,m0", kAllBits},
        {"sonyflake", 1409529600000, "unit=10ms fields=t39,s8,m16", kAllBits},
        {"baidu", 1463673600000, "unit=s fields=t28,m22,s13", kAllBits},
        {"pgedge", 1672531200000, "unit=ms fields=t41,m10,s12", kAllBits},
        {"js_safe", 1767225600000, "unit=ms fields=t41,m3,s9", 9007199254740991},
    };
    EXPECT_EQ(presets().count, std::size(cases));
    for (const Case &each : cases) {
        const Preset *preset = find_preset(std::string_view(each.name));
        ASSERT_NE(preset, nullptr) << each.name;
        EXPECT_EQ(preset->layout.epoch_ms, each.epoch_ms) << each.name;
        const std::string spec(format_layout(preset->layout).view());
        EXPECT_EQ(spec.substr(spec.find(' ') + 1), each.unit_and_fields) << each.name;
        EXPECT_EQ(preset->layout.max_id(), each.max_id) << each.name;
    }
}

TEST(PresetTest, KnownIdsHaveTheirKnownFields)
{
    for (const auto &row : read_vectors("known_ids.tsv")) {
        ASSERT_GE(row.size(), 5u);
        const Layout layout = layout_named(row[0]);
        const std::int64_t id = std::stoll(row[1]);
        SCOPED_TRACE(row[0] + " " + row[1]);

        const Parts parts = layout.decompose(id);
        EXPECT_EQ(iso_time(layout.to_unix_ms(parts.timestamp)), row[2]);
        EXPECT_EQ(std::to_string(parts.machine_id), row[3]);
        EXPECT_EQ(std::to_string(parts.sequence), row[4]);

        const Layout at_time = layout_named("epoch=" + row[2] + " unit=ms fields=t1,m1,s1");
        EXPECT_EQ(layout.compose({layout.from_unix_ms(at_time.epoch_ms), std::stoll(row[3]),
                                  std::stoll(row[4])}),
                  id);
    }
}

} /* namespace */
} /* namespace snowflake */
