// Version numbers, which change with every change of a dictionary, or of a class and its bases. While they are the
// same, a name has the same value there.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

namespace opwright {

// The versions of a dictionary, of a class, or of an object's attributes and class; zeros if Python has none. With a
// class of a metaclass of its own, such as `torch.Tensor`, comes the version of that, which may have descriptors.
struct Version {
  uint64_t dictionary = 0;
  unsigned int type = 0;

  bool is_known() const { return dictionary != 0 || type != 0; }
  bool operator==(const Version& other) const { return dictionary == other.dictionary && type == other.type; }
};

// Python 3.14 has no dictionary versions, and from 3.13 on some objects change their attributes without a new version.
#if PY_VERSION_HEX < 0x030D0000 && !defined(Py_GIL_DISABLED)

constexpr bool versions_are_told = true;

// Where the version of a dictionary is.
inline const uint64_t* place_of_version(PyObject* dictionary) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return &reinterpret_cast<PyDictObject*>(dictionary)->ma_version_tag;
#pragma GCC diagnostic pop
}

inline uint64_t version_of_dictionary(PyObject* dictionary) { return *place_of_version(dictionary); }

#else

constexpr bool versions_are_told = false;

inline const uint64_t* place_of_version(PyObject*) { return nullptr; }

inline uint64_t version_of_dictionary(PyObject*) { return 0; }

#endif

// The version of a class if it has a valid one; a class that changes very often gets none any more.
inline unsigned int present_version_of_type(PyTypeObject* type) {
#if defined(Py_GIL_DISABLED)  // another thread may change it meanwhile
  return 0;
#elif PY_VERSION_HEX < 0x030D0000
  return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
#else
  return type->tp_version_tag;
#endif
}

// A class that has changed gets its new version when a name is looked up in it.
inline unsigned int version_of_type(PyTypeObject* type) {
  if (present_version_of_type(type) == 0) {
    static PyObject* const name = PyUnicode_InternFromString("__class__");
    _PyType_Lookup(type, name);
  }
  return present_version_of_type(type);
}

// The version of the place where `holder` keeps its values by name or key.
inline Version version_of(PyObject* holder) {
  if (PyDict_Check(holder)) return {version_of_dictionary(holder), 0};
  if (PyType_Check(holder)) {
    PyTypeObject* const kind = Py_TYPE(holder);
    const unsigned int type = version_of_type(reinterpret_cast<PyTypeObject*>(holder));
    if (kind == &PyType_Type) return {0, type};
    const unsigned int of_kind = version_of_type(kind);
    return type == 0 || of_kind == 0 ? Version() : Version{of_kind, type};
  }
  if (!versions_are_told) return {};
  const unsigned int type = version_of_type(Py_TYPE(holder));
  PyObject** const attributes = type != 0 ? _PyObject_GetDictPtr(holder) : nullptr;
  if (!attributes || !*attributes) return {};
  return {version_of_dictionary(*attributes), type};
}

// Whether a member of a class stays what it is: that of a user's class may become a descriptor.
inline bool is_of_python(PyObject* member) { return !PyType_HasFeature(Py_TYPE(member), Py_TPFLAGS_HEAPTYPE); }

// Whether an attribute of an object comes from its dictionary: the class has no data descriptor of that name.
inline bool is_own_attribute(PyObject* holder, PyObject* name, PyObject* value) {
  PyObject** const attributes = _PyObject_GetDictPtr(holder);
  if (!attributes || !*attributes || PyDict_GetItemWithError(*attributes, name) != value) {
    PyErr_Clear();
    return false;
  }
  PyObject* const of_class = _PyType_Lookup(Py_TYPE(holder), name);
  return !of_class || (is_of_python(of_class) && !Py_TYPE(of_class)->tp_descr_set);
}

// Whether an attribute of a class is stored in it or its bases, and not computed on access. A member of its metaclass may
// become a descriptor that goes first.
inline bool is_own_member(PyObject* type, PyObject* name, PyObject* value) {
  if (!Py_IS_TYPE(type, &PyType_Type) && _PyType_Lookup(Py_TYPE(type), name)) return false;
  return _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type), name) == value && is_of_python(value);
}

}  // namespace opwright
