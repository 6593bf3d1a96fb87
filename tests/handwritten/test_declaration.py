"""Heads of functions, read from sources as people write them."""

from __future__ import annotations

import pytest

from opwright.errors import Place
from opwright.handwritten.declaration import CppParameter, read_declarations

# source → name, returned type, parameters as "type name" with * for pointers and const, line
HEADS = {
    "plain": ("void f(const float* x, float *y, int64_t n) {}", "f void const float* x, float* y, int64_t n", 1),
    "restrict": ("void f(float* __restrict__ y, const double *const x) {}", "f void float* y, const double* x", 1),
    "array": ("void f(float y[], int n[3]) {}", "f void float* y, int* n", 1),
    "no parameters": ("void f() {}\n", "f void ", 1),
    "void": ("void f(void) {}\n", "f void ", 1),
    "template": ("template <class T>\nvoid f(const T* x) {}", "f void const T* x", 2),
    "namespaces": ("std::vector<torch::Tensor> f(const at::Tensor& x) {}", "f vector<Tensor> const Tensor x", 1),
    "nested brackets": ("void f(std::map<int, float> m, float c = g(1, 2)) {}", "f void map<int, float> m, float c", 1),
    "extern": ('extern "C" void f(int n) noexcept {}', "f void int n", 1),
    "cuda": ("__global__ void __launch_bounds__(256) f(float* y) {}", "f void float* y", 1),
    "comments": ("// void g(int n) {\n/* void h() { */ void f(int /* how many */ n) {}", "f void int n", 2),
    "strings": ('const char* s = "void g() {";\nvoid f(int n) {}', "f void int n", 2),
    "directives": ("#define G(x) void g() { \\\n }\nvoid f(int n) {}", "f void int n", 3),
    "several lines": ("\n\nvoid f(int a,\n       int b)\n{}", "f void int a, int b", 3),
    "calls inside": (
        "void f(int n) { if (n) { g(n); } for (;;) { h(); } auto k = [](int a) { return a; }; }",
        "f void int n",
        1,
    ),
    "only declared": ("void g(int n);\nvoid f(int n) {}", "f void int n", 2),
    "inside of a namespace": ("namespace a {\nvoid f(int n) {}\n}", "f void int n", 2),
}


@pytest.mark.parametrize("what", HEADS)
def test_a_head_is_read(what: str) -> None:
    text, expected, line = HEADS[what]
    (found,) = read_declarations(text, "a.cpp")
    spelled = ", ".join(map(_spelled, found.parameters))
    assert f"{found.name} {found.returns} {spelled}" == expected
    assert found.place == Place("a.cpp", line)


def test_what_templates_and_kernels_are() -> None:
    text = "template <typename T, int K, class U>\n__global__ void f(T* x, U* y) {}"
    (found,) = read_declarations(text, "a.cu")
    assert found.type_parameters == ("T", "U")
    assert found.is_cuda_kernel
    assert not found.is_torch_facing


def test_overloads_come_in_order() -> None:
    text = "void f(float* x) {}\nvoid f(double* x) {}\nint g(int n) { return n; }"
    assert [(found.name, found.place.line) for found in read_declarations(text, "a.cpp")] == [
        ("f", 1),
        ("f", 2),
        ("g", 3),
    ]


def _spelled(parameter: CppParameter) -> str:
    constant, pointer = "const " * parameter.is_const, "*" * parameter.is_pointer
    return f"{constant}{parameter.type}{pointer} {parameter.name}"
