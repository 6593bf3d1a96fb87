// What compiled autograd needs of a node: the dependencies of its backward pass, and that pass as a call in a graph.
#pragma once

#include <torch/csrc/dynamo/compiled_autograd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node.h"

namespace opwright {

using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::SwapSavedVariables;
using Given = torch::dynamo::autograd::PackedArgs;

// Put a backward pass into the graph: (cotangents, further inputs) -> gradients. A compiler runs one that is traceable
// on tensors without data; the graph is broken around another one. It may run again and again, and must depend on nothing
// else that changes.
template <typename... Kinds>
inline variable_list put_into_graph(const Node& node, torch::autograd::functional_apply_t pass, bool is_traceable,
                                    const variable_list& cotangents, const SwapSavedVariables& saved,
                                    const Kinds&... besides) {
  namespace compiled = torch::dynamo::autograd;
  using Edges = std::vector<std::optional<torch::autograd::InputMetadata>>;
  Given given;
  (given.pack(besides), ...);
  PyObject* graph = saved.get_py_compiler();
  const auto& compiler = compiled::getPyCompilerInterface();
  const std::string name =
      compiler->bind_function(graph, node.name(), std::move(pass), {compiled::IValuePacker<Kinds>::packed_type()...},
                              /*is_custom_function=*/true, is_traceable);
  return compiler->call_function(graph, "apply_functional", name, cotangents, given.vec(),
                                 compiled::IValuePacker<Edges>::pack(compiled::get_input_metadata(node.next_edges())));
}

}  // namespace opwright
