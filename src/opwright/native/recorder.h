// Makes a trail from guards that have just been found to hold.
#pragma once

#include <structmember.h>
#include <torch/csrc/autograd/python_variable.h>

#include <memory>
#include <unordered_set>

#include "trail.h"

namespace opwright {

// It compares the guards again. That may run code, such as the comparison of keys; so it looks at all words once more.
class Recorder {
 public:
  Recorder(PyObject* absent, size_t slots) : absent_(absent), slots_(slots), trail_(std::make_shared<Trail>()) {}

  // Null if versions are not told, or something has changed meanwhile.
  std::shared_ptr<const Trail> recorded(Guard& root, PyObject* function) {
    if (!versions_are_told) return nullptr;
    record_inside(root, {function, true});
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (slots_[slot]) trail_->filled.emplace_back(slot, slots_[slot]);
    return slots_.are_distinct() && trail_->is_unchanged() ? trail_ : nullptr;
  }

 private:
  // A value, or null if there is none.
  struct Value {
    PyObject* object = nullptr;
    bool is_fixed = true;  // it is this very object; else one at its address
    bool is_told = true;   // whether words say so
  };

  static constexpr Value not_told = {nullptr, false, false};

  void record_inside(Guard& guard, const Value& value) {
    for (Guard& inner : guard.inner)
      if (!record(inner, value)) trail_->live.emplace_back(&inner, value.object);
  }

  // False if no words stand for a guard; those in it are recorded.
  bool record(Guard& guard, const Value& holder) {
    Value value = fetched(guard, holder);
    if (!value.is_told) return false;
    if (!value.object) return guard.expected == absent_;
    if (value.object == absent_) return false;
    kept_.push_back(py::reinterpret_borrow<py::object>(value.object));  // code that runs might remove it
    value.is_fixed = value.is_fixed || value.object == guard.expected;
    if (!passes(guard, value)) return false;
    record_inside(guard, value);
    return true;
  }

  Value fetched(const Guard& guard, const Value& holder) {
    PyObject* const from = holder.object;
    switch (guard.fetch) {
      case Guard::self:
        return holder;
      case Guard::known:
        return {guard.key};
      case Guard::item:
        return PyDict_Check(from) ? of_key(guard.key, from) : not_told;
      case Guard::keys:
        if (!PyDict_CheckExact(from) || guard.at_hand(from) != guard.expected) return not_told;
        add_dictionary(from);
        return {guard.expected};
      case Guard::index:
        return of_sequence(guard, holder);
      case Guard::code:
      case Guard::globals:
      case Guard::defaults:
      case Guard::keyword_defaults:
      case Guard::cell:
        return PyFunction_Check(from) ? of_function(guard, holder) : not_told;
      case Guard::call:
        return PyWeakref_CheckRefExact(from) ? of_weak_reference(holder) : not_told;
      case Guard::via:
        if (guard.key == reinterpret_cast<PyObject*>(&PyTuple_Type)) return of_set(guard, holder);
        if (!guard.is_type_of()) return not_told;
        return kind_of(holder);
      case Guard::member:
        return of_slot(guard.key, holder);
      case Guard::attribute:
        if (guard.is_dict) return attributes_of(holder);
        return PyType_Check(from) ? not_computed(of_class(guard.key, from)) : of_object(guard.key, holder);
      case Guard::method:
        return PyType_Check(from) ? function_in(of_class(guard.key, from)) : not_told;
      case Guard::of_class:
        return PyType_Check(from) ? answer_of_class(guard, from) : not_told;
    }
    return not_told;
  }

  Value of_key(PyObject* key, PyObject* dictionary) {
    add_dictionary(dictionary);
    PyObject* const value = PyDict_GetItemWithError(dictionary, key);
    const bool has_failed = PyErr_Occurred() != nullptr;  // in the comparison with a key of the user's
    forget_error();
    return {value, true, !has_failed};
  }

  Value of_sequence(const Guard& guard, const Value& holder) {
    PyObject* const from = holder.object;
    if (PyTuple_Check(from) && guard.position < PyTuple_GET_SIZE(from)) {
      PyObject** const place = &reinterpret_cast<PyTupleObject*>(from)->ob_item[guard.position];
      if (holder.is_fixed) return {*place};
      add(&reinterpret_cast<PyVarObject*>(from)->ob_size);
      return at(place);
    }
    if (!PyList_Check(from) || guard.position >= PyList_GET_SIZE(from)) return not_told;
    auto* const list = reinterpret_cast<PyListObject*>(from);
    add(&list->ob_base.ob_size);
    add(&list->ob_item);
    return at(&list->ob_item[guard.position]);
  }

  Value of_function(const Guard& guard, const Value& holder) {
    auto* const function = reinterpret_cast<PyFunctionObject*>(holder.object);
    switch (guard.fetch) {
      case Guard::code:
        return at(&function->func_code);
      case Guard::defaults:
        return at(&function->func_defaults);
      case Guard::keyword_defaults:
        return at(&function->func_kwdefaults);
      case Guard::globals:
        return holder.is_fixed ? Value{function->func_globals} : at(&function->func_globals);
    }
    PyObject* const cells = function->func_closure;
    if (!cells || guard.position >= PyTuple_GET_SIZE(cells)) return not_told;
    PyObject** const place = &reinterpret_cast<PyTupleObject*>(cells)->ob_item[guard.position];
    if (!holder.is_fixed) {
      add(&function->func_closure);
      add(&reinterpret_cast<PyVarObject*>(cells)->ob_size);
      add(place);
    }
    auto* const cell = reinterpret_cast<PyCellObject*>(*place);
    return cell->ob_ref ? at(&cell->ob_ref) : not_told;
  }

  // It leads to one object for ever, or to nothing.
  Value of_weak_reference(const Value& holder) {
    auto* const reference = reinterpret_cast<PyWeakReference*>(holder.object);
    if (reference->wr_object == Py_None) return not_told;
    add(&reference->wr_object);
    return {reference->wr_object, holder.is_fixed};
  }

  // The members of a set, in the order in which they are gone through; the state owns them.
  Value of_set(const Guard& guard, const Value& holder) {
    if (!holder.is_fixed || !PyAnySet_CheckExact(holder.object) || !PyTuple_CheckExact(guard.expected)) return not_told;
    auto* const set = reinterpret_cast<PySetObject*>(holder.object);
    add(&set->used);
    add(&set->mask);
    add(&set->table);
    Py_ssize_t next = 0;
    for (Py_ssize_t k = 0; k <= set->mask; ++k) {
      const setentry& entry = set->table[k];
      add(&entry.key);
      add(&entry.hash);  // -1 where something was removed
      if (!entry.key || entry.hash == -1) continue;
      if (next >= PyTuple_GET_SIZE(guard.expected) || entry.key != PyTuple_GET_ITEM(guard.expected, next++))
        return not_told;
    }
    return {guard.expected, true, next == PyTuple_GET_SIZE(guard.expected)};
  }

  Value kind_of(const Value& value) {
    add_kind(value);
    return {reinterpret_cast<PyObject*>(Py_TYPE(value.object)), is_static(value)};
  }

  static bool is_static(const Value& value) { return !PyType_HasFeature(Py_TYPE(value.object), Py_TPFLAGS_HEAPTYPE); }

  Value attributes_of(const Value& holder) {
    PyObject** const place = PyType_Check(holder.object) ? nullptr : _PyObject_GetDictPtr(holder.object);
    if (!place || !*place || !PyDict_Check(*place)) return not_told;
    add_kind(holder);
    add(place);
    add_dictionary(*place);
    return {*place};
  }

  // What an object of Python's keeps in a slot, such as the function of a property.
  Value of_slot(PyObject* name, const Value& holder) {
    if (!is_static(holder)) return of_object(name, holder);
    PyObject* const slot = _PyType_Lookup(Py_TYPE(holder.object), name);
    if (!slot || !Py_IS_TYPE(slot, &PyMemberDescr_Type)) return not_told;
    const PyMemberDef& member = *reinterpret_cast<PyMemberDescrObject*>(slot)->d_member;
    if (member.type != T_OBJECT && member.type != T_OBJECT_EX) return not_told;
    add_kind(holder);
    auto* const place = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(holder.object) + member.offset);
    return *place ? at(place) : not_told;
  }

  // A member of a class, as `type.__getattribute__` gives it where nothing is computed.
  Value of_class(PyObject* name, PyObject* from) {
    auto* const cls = reinterpret_cast<PyTypeObject*>(from);
    PyObject* const of_kind = _PyType_Lookup(Py_TYPE(from), name);
    PyObject* const found = _PyType_Lookup(cls, name);
    if (!add_class(cls) || !add_kind_of_class(from)) return not_told;
    if (!add_kind_of_member(of_kind) || !add_kind_of_member(found)) return not_told;
    if (of_kind && Py_TYPE(of_kind)->tp_descr_set) {
      const bool is_home =
          PyType_HasFeature(cls, Py_TPFLAGS_HEAPTYPE) && PyUnicode_CompareWithASCIIString(name, "__module__") == 0;
      return is_home ? Value{PyDict_GetItemWithError(cls->tp_dict, name)} : not_told;
    }
    if (!found && of_kind) return not_told;
    return {found};
  }

  static Value not_computed(const Value& member) {
    const bool is_told = !member.object || !Py_TYPE(member.object)->tp_descr_get || PyFunction_Check(member.object);
    return is_told ? member : not_told;
  }

  // The function behind a method, a class method or a static method.
  Value function_in(const Value& member) {
    if (!member.object ||
        !(Py_IS_TYPE(member.object, &PyClassMethod_Type) || Py_IS_TYPE(member.object, &PyStaticMethod_Type)))
      return not_computed(member);
    static PyObject* const name = PyUnicode_InternFromString("__func__");
    const Value function = of_slot(name, member);
    return function.object && PyFunction_Check(function.object) ? function : not_told;
  }

  // The same answer as long as the class has its version: an object that the class holds, or a plain value.
  Value answer_of_class(const Guard& guard, PyObject* from) {
    auto* const cls = reinterpret_cast<PyTypeObject*>(from);
    if (!add_class(cls)) return not_told;
    const py::object answer = py::reinterpret_steal<py::object>(PyObject_CallOneArg(guard.key, from));
    forget_error();
    kept_.push_back(answer);
    const bool is_new = answer && Py_REFCNT(answer.ptr()) <= 2;  // not the class's: `answer` and `kept_` hold it
    return {answer.ptr(), true, answer && (guard.check == Guard::plain || !is_new)};
  }

  // An attribute of an object, as `object.__getattribute__` gives it where nothing is computed.
  Value of_object(PyObject* name, const Value& holder) {
    PyTypeObject* const kind = Py_TYPE(holder.object);
    PyObject* const of_kind = _PyType_Lookup(kind, name);
    add_kind(holder);
    if (!add_class(kind) || !add_kind_of_member(of_kind)) return not_told;
    if (of_kind && Py_TYPE(of_kind)->tp_descr_set) return not_told;
    const Value attributes = attributes_of(holder);
    if (!attributes.is_told) return not_told;
    const Value own = of_key(name, attributes.object);
    if (own.object || !own.is_told || !of_kind) return own;
    return Py_TYPE(of_kind)->tp_descr_get ? not_told : Value{of_kind};
  }

  bool passes(const Guard& guard, const Value& value) {
    switch (guard.check) {
      case Guard::nothing:
        return guard.expected != absent_;
      case Guard::plain:
        return value.is_fixed && are_same(value.object, guard.expected);
      case Guard::identity:
        return value.object == guard.expected;
      case Guard::type:
        add_kind(value);
        return reinterpret_cast<PyObject*>(Py_TYPE(value.object)) == guard.expected;
      case Guard::length:
        add_kind(value);
        return is_of_length(value, guard.expected);
      case Guard::in_slot:
        if (!value.is_fixed) return false;
        if (guard.expected == Py_None) return THPVariable_Check(value.object) && slots_.put(guard.slot, value.object);
        add_kind(value);
        return reinterpret_cast<PyObject*>(Py_TYPE(value.object)) == guard.expected &&
               slots_.put(guard.slot, value.object);
    }
    return false;
  }

  bool is_of_length(const Value& value, PyObject* expected) {
    PyObject* const object = value.object;
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != PyTuple_GET_ITEM(expected, 0)) return false;
    const bool is_a_sequence = PyTuple_Check(object) || PyList_Check(object);  // or a subclass
    if (PyDict_CheckExact(object) || PyODict_CheckExact(object))
      add(&reinterpret_cast<PyDictObject*>(object)->ma_used);
    else if (is_a_sequence)
      add(&reinterpret_cast<PyVarObject*>(object)->ob_size);
    else
      return false;
    const Py_ssize_t size = is_a_sequence ? Py_SIZE(object) : PyObject_Size(object);
    return size == PyLong_AsSsize_t(PyTuple_GET_ITEM(expected, 1));
  }

  void add_dictionary(PyObject* dictionary) { add(place_of_version(dictionary)); }

  bool add_class(PyTypeObject* cls) {
    if (version_of_type(cls) == 0) return false;
    add(&cls->tp_flags);
    add(&cls->tp_version_tag);
    return true;
  }

  // A class may be given another metaclass.
  bool add_kind_of_class(PyObject* cls) {
    if (Py_IS_TYPE(cls, &PyType_Type)) return true;
    add(&cls->ob_type);
    return add_class(Py_TYPE(cls));
  }

  // Whether a member of a class is computed depends on its own class, which may get a `__get__`, or be exchanged.
  bool add_kind_of_member(PyObject* member) {
    if (!member || !PyType_HasFeature(Py_TYPE(member), Py_TPFLAGS_HEAPTYPE)) return true;
    add(&member->ob_type);
    return add_class(Py_TYPE(member));
  }

  // The class of an object, where another can be assigned or another object can be there.
  void add_kind(const Value& value) {
    if (!value.is_fixed || !is_static(value) || PyModule_Check(value.object)) add(&value.object->ob_type);
  }

  Value at(PyObject** place) {
    add(place);
    return {Guard::or_none(*place), *place == nullptr};
  }

  void add(const void* place) {
    if (place && seen_.insert(place).second) trail_->words.push_back({place, Trail::read(place)});
  }

  PyObject* absent_;
  Slots slots_;
  std::shared_ptr<Trail> trail_;
  std::unordered_set<const void*> seen_;
  std::vector<py::object> kept_;  // until it is done
};

}  // namespace opwright
