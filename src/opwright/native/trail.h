// A trail: what a comparison of guards looked at, as words of memory. While these are as they were, the guards hold, and
// comparing the words takes a tenth of the time.
//
// The words are in the order in which they were found: each is looked at only if those before it say that its place is
// still there. What a word says is either
//  - that a value is the very same object, or that nothing is there: the version of a dictionary or of a class, which is given once
//    in a process; or a pointer to an object that the state owns, so that no other can come to lie at its address;
//  - or only that some object is at an address. What leads on from it then needs words too, even where it could not
//    change in one object: the cells of a function, the members of a tuple.
// Guards that no words can stand for are live: they are compared one by one, as all are without a trail.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "guard.h"
#include "slots.h"

namespace opwright {

struct Trail {
  struct Word {
    const void* place;
    uint64_t was;
  };

  std::vector<Word> words;
  std::vector<std::pair<Guard*, PyObject*>> live;    // and what they fetch from
  std::vector<std::pair<size_t, PyObject*>> filled;  // what is in the slots

  // It runs no code of Python, so nothing changes in between.
  bool is_unchanged() const {
    for (const Word& word : words)
      if (read(word.place) != word.was) return false;
    return true;
  }

  void fill(Slots& slots) const {
    for (const auto& [slot, value] : filled) slots.put(slot, value);
  }

  static uint64_t read(const void* place) {
    uint64_t word = 0;
    std::memcpy(&word, place, sizeof(word));
    return word;
  }
};

// When a trail is worth recording, which takes as long as tens of comparisons: seldom where something changes before the
// last one has paid.
class Pace {
 public:
  void succeeded() {
    if (++succeeded_ >= paid_) wait_ = 0;
  }

  bool is_due() {
    if (left_ > 0) {
      --left_;
      return false;
    }
    succeeded_ = 0;
    left_ = wait_;
    if (wait_ < most_) wait_ = 2 * wait_ + 1;
    return true;
  }

 private:
  static constexpr int most_ = 63, paid_ = 32;
  int wait_ = 0, left_ = 0, succeeded_ = 0;
};

}  // namespace opwright
