/*
 * machine_ids.cpp
 *     Sets of machine IDs; see machine_ids.h.
 */
#include "core/machine_ids.h"

namespace snowflake {
namespace {

class Reader {
  public:
    explicit Reader(std::string_view text) noexcept : text_(text) {}

    std::size_t offset() const noexcept { return offset_; }
    bool at_end() const noexcept { return offset_ == text_.size(); }

    void skip_spaces() noexcept
    {
        while (!at_end() && (text_[offset_] == ' ' || text_[offset_] == '\t')) {
            offset_++;
        }
    }

    bool accept(char c) noexcept
    {
        if (at_end() || text_[offset_] != c) {
            return false;
        }
        offset_++;
        return true;
    }

    /* A decimal number up to kMaxMachineId. */
    bool number(std::uint32_t *value) noexcept
    {
        const std::size_t start = offset_;
        std::uint64_t parsed = 0;
        while (!at_end() && text_[offset_] >= '0' && text_[offset_] <= '9') {
            parsed = parsed * 10 + static_cast<std::uint64_t>(text_[offset_] - '0');
            if (parsed > kMaxMachineId) {
                offset_ = start;
                return false;
            }
            offset_++;
        }
        *value = static_cast<std::uint32_t>(parsed);
        return offset_ > start;
    }

  private:
    std::string_view text_;
    std::size_t offset_ = 0;
};

bool fail(MachineIdsError *error, const char *message, std::size_t offset) noexcept
{
    *error = {message, offset};
    return false;
}

} /* namespace */

bool MachineIdSet::contains(std::uint32_t machine_id) const noexcept
{
    if (all()) {
        return true;
    }
    for (std::uint32_t i = 0; i < count; i++) {
        if (machine_id >= ranges[i].low && machine_id <= ranges[i].high) {
            return true;
        }
    }
    return false;
}

std::uint32_t MachineIdSet::greatest() const noexcept
{
    std::uint32_t greatest = 0;
    for (std::uint32_t i = 0; i < count; i++) {
        greatest = ranges[i].high > greatest ? ranges[i].high : greatest;
    }
    return greatest;
}

bool parse_machine_ids(std::string_view text, MachineIdSet *set, MachineIdsError *error) noexcept
{
    Reader reader(text);
    set->count = 0;
    reader.skip_spaces();
    if (reader.at_end()) {
        return true;
    }
    for (;;) {
        MachineIdRange range{};
        reader.skip_spaces();
        const std::size_t start = reader.offset();
        if (!reader.number(&range.low)) {
            return fail(error, "a machine ID is a number from 0 to 2147483647", reader.offset());
        }
        range.high = range.low;
        reader.skip_spaces();
        if (reader.accept('-')) {
            reader.skip_spaces();
            if (!reader.number(&range.high)) {
                return fail(error, "a machine ID is a number from 0 to 2147483647",
                            reader.offset());
            }
        }
        if (range.high < range.low) {
            return fail(error, "a range ends below its start", start);
        }
        if (set->count == MachineIdSet::kMaxRanges) {
            return fail(error, "there are more than 64 ranges", start);
        }
        set->ranges[set->count++] = range;
        reader.skip_spaces();
        if (reader.at_end()) {
            return true;
        }
        if (!reader.accept(',')) {
            return fail(error, "machine IDs are separated by commas", reader.offset());
        }
    }
}

} /* namespace snowflake */
