// The hot path: calls of operators without a line of Python, from their arguments to their results.
//
// This is the only part of opwright that is built against PyTorch's C++ headers, because the stable interface has no
// autograd nodes. It belongs to one version of PyTorch and of Python and holds no mathematics. Without it, everything
// works, about 10 µs per call slower: binding/serving/ and binding/autograd/node.py do the same in Python.
#define AT_PER_OPERATOR_HEADERS  // PyTorch's headers then include the operators that they use, not all of them
#include <pybind11/stl.h>

#include "cut.h"
#include "entry.h"
#include "modules.h"
#include "step_below.h"
#include "watched.h"

namespace opwright {

constexpr const char* capsule_name = "opwright.entry";

static PyObject* enter(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords) {
  HANDLE_TH_ERRORS
  const Entry& entry = *static_cast<const Entry*>(PyCapsule_GetPointer(self, capsule_name));
  py::object results = entry.call(given, count, keywords);
  if (!results) Py_RETURN_NOTIMPLEMENTED;  // an operator that changes its arguments may return None
  return results.release().ptr();
  END_HANDLE_TH_ERRORS
}

static PyMethodDef method = {"play", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(enter)),
                             METH_FASTCALL | METH_KEYWORDS,
                             "Run the operator; `left` for a call that is left to the function; NotImplemented if a mode is active "
                             "or no variant takes the arguments."};

static py::object make_entry(const py::tuple& parameters, py::handle absent, const std::vector<Entry::Given>& ways,
                             Positions changed, py::handle left, py::object owner) {
  auto entry = std::make_unique<Entry>(Signature(parameters, absent), ways, std::move(changed), left, std::move(owner));
  const py::capsule capsule(entry.get(), capsule_name, [](PyObject* self) {
    delete static_cast<Entry*>(PyCapsule_GetPointer(self, capsule_name));
  });
  entry.release();
  return py::reinterpret_steal<py::object>(PyCFunction_New(&method, capsule.ptr()));
}

constexpr const char* module_capsule_name = "opwright.module_entry";

static PyObject* enter_module(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  const auto& entry = *static_cast<const ModuleEntry*>(PyCapsule_GetPointer(self, module_capsule_name));
  py::object results = count == 2 ? entry.call(given[0], given[1]) : py::object();
  if (!results) Py_RETURN_NOTIMPLEMENTED;
  return results.release().ptr();
  END_HANDLE_TH_ERRORS
}

static PyMethodDef module_method = {"play", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(enter_module)),
                                    METH_FASTCALL, "Run the module for (args, kwargs); NotImplemented if it cannot."};

static py::object make_module_entry(const std::vector<ModuleEntry::GivenState>& states, py::handle left, bool is_full,
                                    py::object owner) {
  auto entry = std::make_unique<ModuleEntry>(states, left, is_full, std::move(owner));
  const py::capsule capsule(entry.get(), module_capsule_name, [](PyObject* self) {
    delete static_cast<ModuleEntry*>(PyCapsule_GetPointer(self, module_capsule_name));
  });
  entry.release();
  return py::reinterpret_steal<py::object>(PyCFunction_New(&module_method, capsule.ptr()));
}

}  // namespace opwright

// It needs no GIL: entries, tapes and routes are immutable, and what nodes save has a mutex. Types of
// pybind11, and torch itself, belong to one interpreter of a process.
#if PYBIND11_VERSION_MAJOR >= 3
PYBIND11_MODULE(opwright_tape, module, py::mod_gil_not_used(), py::multiple_interpreters::not_supported()) {
#else
PYBIND11_MODULE(opwright_tape, module, py::mod_gil_not_used()) {
#endif
  using namespace opwright;
  py::class_<Route, std::shared_ptr<Route>>(module, "Route").def(py::init<const py::kwargs&>());
  py::class_<Guards, std::shared_ptr<Guards>>(module, "Guards")
      .def(py::init<py::tuple, py::handle, py::handle, py::handle, size_t, at::ScalarType>(), py::arg("spec"),
           py::arg("function"), py::arg("absent"), py::arg("are_same"), py::arg("slots") = 0,
           py::arg("default_dtype") = at::kFloat)
      .def("hold", py::overload_cast<>(&Guards::hold))
      .def("found", &Guards::found)
      .def("counts", &Guards::counts);
  py::class_<LeftCalls, std::shared_ptr<LeftCalls>>(module, "LeftCalls").def(py::init<>()).def("add", &LeftCalls::add);
  py::class_<Runs, std::shared_ptr<Runs>>(module, "Runs");
  py::class_<Tape, Runs, std::shared_ptr<Tape>>(module, "Tape")
      .def(py::init<std::vector<Tape::Given>, std::vector<std::tuple<size_t, bool, py::tuple>>, size_t,
                    std::vector<py::object>, py::object, std::shared_ptr<Guards>, py::object>(),
           py::kw_only(), py::arg("ways"), py::arg("varying"), py::arg("arity"), py::arg("plain_types"),
           py::arg("owner"), py::arg("guards"), py::arg("state"))
      .def("way_of", &Tape::way_of)
      .def("replace", &Tape::replace);
  py::class_<Watched>(module, "Watched")
      .def(py::init<py::tuple>(), py::arg("plain_types"))
      .def("look", &Watched::look)
      .def("holds", &Watched::holds)
      .def("gradients", &Watched::gradients);
  module.def("order_of", [](const at::Tensor& tensor) {
    const Order order = order_of(tensor);
    return std::vector<int64_t>(order.begin(), order.end());
  });
  py::class_<Cut>(module, "Cut")
      .def(py::init<Arguments, Arguments, Arguments>(), py::arg("arguments"), py::arg("outputs"), py::arg("at"))
      .def("leaves", &Cut::leaves)
      .def("mend", &Cut::mend);
  module.def("entry", &make_entry, py::arg("parameters"), py::arg("absent"), py::arg("ways"), py::arg("changed"),
             py::arg("left"), py::arg("owner"));
  module.def("module_entry", &make_module_entry, py::arg("states"), py::arg("left"), py::arg("is_full"),
             py::arg("owner"));
  module.def("step_below", torch::wrap_pybind_function(&step_below_for_python), py::arg("operator"),
             py::arg("transforms"), py::arg("arguments"));
}
