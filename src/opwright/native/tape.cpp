// A tape: the calls of one operator on the hot path, without a line of Python. It runs the forward kernel of the first
// variant that takes the arguments and records the node that runs the backward kernel.
//
// This is the only part of opwright that is built against PyTorch's C++ headers, because the stable interface has no
// autograd nodes. It belongs to one version of PyTorch and of Python and holds no mathematics. Without it, everything
// works, about 10 µs per call slower: binding/autograd/node.py does the same in Python.
#include <pybind11/stl.h>

#include <algorithm>

#include "derivative.h"
#include "guards.h"
#include "quiet.h"
#include "step_below.h"

namespace opwright {

struct Tape {
  std::vector<std::pair<uint64_t, std::vector<std::shared_ptr<const Route>>>> routes;  // by who requires gradients
  size_t arity;
  std::vector<py::object> plain_types;
  py::object differentiate;  // a weak reference: Python owns it, and the tape; nodes hold it for as long as they live
  std::shared_ptr<Guards> guards;
  py::object state;  // a weak reference to the owner of everything that the guards use
};

constexpr const char* capsule_name = "opwright.tape";
constexpr size_t most_arguments = 64;

static bool is_plain(const Tape& tape, PyObject* argument) {
  for (const py::object& type : tape.plain_types)
    if (reinterpret_cast<PyObject*>(Py_TYPE(argument)) == type.ptr()) return true;
  return false;
}

// A new reference to the object of a weak one; null if it is gone.
static PyObject* owner_of(const py::object& weak) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* owner = nullptr;
  if (PyWeakref_GetRef(weak.ptr(), &owner) < 0) throw py::error_already_set();
  return owner;
#else
  PyObject* owner = PyWeakref_GET_OBJECT(weak.ptr());
  return owner == Py_None ? nullptr : Py_NewRef(owner);
#endif
}

// Whether what the function reads outside of its arguments is unchanged since it was traced.
static bool is_as_traced(const Tape& tape) {
  if (!tape.guards) return true;
  const auto state = py::reinterpret_steal<py::object>(owner_of(tape.state));
  return state && tape.guards->hold();
}

static const std::vector<std::shared_ptr<const Route>>* find_routes(const Tape& tape, uint64_t mask) {
  for (const auto& [key, routes] : tape.routes)
    if (key == mask) return &routes;
  return nullptr;
}

static bool are_row_major(const Arguments& arguments) {
  return std::all_of(arguments.begin(), arguments.end(), [](const at::Tensor& t) { return t.is_contiguous(); });
}

// Outputs, then intermediates; false if a guard of the variant fails.
static bool run_forward(const Route& route, const Arguments& arguments, torch::jit::Stack& made) {
  if (route.row_major && !are_row_major(arguments)) return false;
  made.clear();
  for (const at::Tensor& argument : arguments) made.emplace_back(argument);
  run(*route.forward, made);
  return made[0].toTensor().defined();
}

static void attach(const std::shared_ptr<const Route>& route, const Differentiable::Operator& differentiate,
                   const Arguments& arguments, torch::jit::Stack& made) {
  const auto node = new_node<Derivative>(Differentiable(route, differentiate), arguments);
  for (int64_t position = 0; position < route->outputs; ++position) {
    const bool differentiable =
        std::find(route->tangents.begin(), route->tangents.end(), position) != route->tangents.end();
    if (differentiable)
      torch::autograd::set_history(made[position].toTensor(), node);
    else
      node->add_input_metadata(Node::undefined_input());
  }
  static_cast<Derivative&>(*node).keep(arguments, made);
}

static PyObject* wrap(const Route& route, torch::jit::Stack& made) {
  if (route.bare) return THPVariable_Wrap(std::move(made[0]).toTensor());
  auto results = py::reinterpret_steal<py::object>(PyTuple_New(route.outputs));
  for (int64_t position = 0; position < route.outputs; ++position) {
    PyObject* result = THPVariable_Wrap(std::move(made[position]).toTensor());
    if (!result) return nullptr;
    PyTuple_SET_ITEM(results.ptr(), position, result);
  }
  return results.release().ptr();
}

// The results, or None if a mode is active or no variant takes these arguments.
static PyObject* play(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  const Tape& tape = *static_cast<const Tape*>(PyCapsule_GetPointer(self, capsule_name));
  if (static_cast<size_t>(count) != tape.arity || !is_quiet() || !is_as_traced(tape)) Py_RETURN_NONE;
  Arguments arguments;
  arguments.reserve(tape.arity);
  uint64_t mask = 0;
  for (size_t k = 0; k < tape.arity; ++k) {
    if (!is_plain(tape, given[k])) Py_RETURN_NONE;
    arguments.push_back(THPVariable_Unpack(given[k]));
    if (has_tangent(arguments[k])) Py_RETURN_NONE;
    if (arguments[k].requires_grad()) mask |= uint64_t{1} << k;
  }
  if (!at::GradMode::is_enabled()) mask = 0;
  const auto* routes = find_routes(tape, mask);
  if (!routes) Py_RETURN_NONE;
  Differentiable::Operator differentiate;
  if (mask) {
    PyObject* owned = owner_of(tape.differentiate);
    if (!owned) Py_RETURN_NONE;  // another thread has wound a new tape
    differentiate = std::make_shared<c10::SafePyObject>(owned, getPyInterpreter());
  }
  const Route* taken = nullptr;
  torch::jit::Stack made;
  {
    const py::gil_scoped_release no_gil;
    for (const auto& route : *routes) {
      if (!run_forward(*route, arguments, made)) continue;
      if (mask) attach(route, differentiate, arguments, made);
      taken = route.get();
      break;
    }
  }
  if (!taken) Py_RETURN_NONE;
  return wrap(*taken, made);
  END_HANDLE_TH_ERRORS
}

static PyMethodDef play_method = {"tape", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(play)),
                                  METH_FASTCALL, "Run the operator; None if nothing at hand takes the arguments."};

static py::object make_tape(std::vector<std::pair<uint64_t, std::vector<std::shared_ptr<Route>>>> routes, size_t arity,
                            std::vector<py::object> plain_types, py::object differentiate,
                            std::shared_ptr<Guards> guards, py::object state) {
  if (arity == 0 || arity > most_arguments) return py::none();
  auto tape = std::make_unique<Tape>();
  tape->arity = arity;
  tape->plain_types = std::move(plain_types);
  tape->differentiate = std::move(differentiate);
  tape->guards = std::move(guards);
  tape->state = std::move(state);
  for (auto& [mask, ways] : routes)
    tape->routes.emplace_back(mask, std::vector<std::shared_ptr<const Route>>(ways.begin(), ways.end()));
  const py::capsule capsule(tape.get(), capsule_name, [](PyObject* self) {
    delete static_cast<Tape*>(PyCapsule_GetPointer(self, capsule_name));
  });
  tape.release();
  return py::reinterpret_steal<py::object>(PyCFunction_New(&play_method, capsule.ptr()));
}

static std::shared_ptr<Route> make_route(std::string node_name, std::string forward, std::string backward,
                                         int64_t outputs, bool bare, bool row_major, Positions kept_arguments,
                                         Positions kept_results, Positions reads,
                                         std::vector<std::pair<int64_t, int64_t>> sizes, Positions tangents,
                                         Positions gradients, std::vector<Positions> spared, int64_t number) {
  auto route = std::make_shared<Route>();
  route->node_name = std::move(node_name);
  route->forward_name = std::move(forward);
  route->backward_name = std::move(backward);
  route->outputs = outputs;
  route->bare = bare;
  route->row_major = row_major;
  route->kept_arguments = std::move(kept_arguments);
  route->kept_results = std::move(kept_results);
  route->reads = std::move(reads);
  route->sizes = std::move(sizes);
  route->tangents = std::move(tangents);
  route->gradients = std::move(gradients);
  route->spared = std::move(spared);
  route->number = number;
  route->find_kernels();
  return route;
}

}  // namespace opwright

// It needs no GIL: tapes and routes are immutable, and what nodes save has a mutex. Types of pybind11, and torch
// itself, belong to one interpreter of a process.
#if PYBIND11_VERSION_MAJOR >= 3
PYBIND11_MODULE(opwright_tape, module, py::mod_gil_not_used(), py::multiple_interpreters::not_supported()) {
#else
PYBIND11_MODULE(opwright_tape, module, py::mod_gil_not_used()) {
#endif
  using namespace opwright;
  py::class_<Route, std::shared_ptr<Route>>(module, "Route")
      .def(py::init(&make_route), py::kw_only(), py::arg("node_name"), py::arg("forward"), py::arg("backward"),
           py::arg("outputs"), py::arg("bare"), py::arg("row_major"), py::arg("kept_arguments"),
           py::arg("kept_results"), py::arg("reads"), py::arg("sizes"), py::arg("tangents"), py::arg("gradients"),
           py::arg("spared"), py::arg("number"));
  py::class_<Guards, std::shared_ptr<Guards>>(module, "Guards")
      .def(py::init<py::tuple, py::handle, py::handle, py::handle>(), py::arg("spec"), py::arg("function"),
           py::arg("absent"), py::arg("are_same"))
      .def("hold", &Guards::hold);
  module.def("tape", &make_tape, py::arg("routes"), py::arg("arity"), py::arg("plain_types"), py::arg("differentiate"),
             py::arg("guards"), py::arg("state"));
  module.def("step_below", torch::wrap_pybind_function(&step_below_for_python), py::arg("operator"),
             py::arg("transforms"), py::arg("arguments"));
}
