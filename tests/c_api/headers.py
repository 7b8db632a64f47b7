# SPDX-License-Identifier: Apache-2.0
"""Checks the headers under include/tensorflow/c against the names that TensorFlow's have.

  headers.py COMPILER INCLUDE LIBRARY... [--tensorflow INCLUDE]

Each header declares the names that header_names.txt gives for it, and each library has the functions among them. With
the headers of a TensorFlow wheel: the list lacks no name of theirs, the functions have the same types, the constants the
same values, the structures the same layout.
"""

import argparse
import os
import re
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Fields by name: a structure of the same size may still differ.
STRUCTURES = {
    "c_api.h": {
        "TF_Output": "oper index",
        "TF_Input": "oper index",
        "TF_AttrMetadata": "is_list list_size type total_size",
        "TF_WhileParams": "ninputs cond_graph cond_inputs cond_output body_graph body_inputs body_outputs name",
        "TF_Buffer": "data length data_deallocator",
    },
    "env.h": {"TF_FileStatistics": "length mtime_nsec is_directory", "TF_ThreadOptions": "stack_size guard_size numa_node"},
    "kernels.h": {
        "TF_StringView": "data len",
        "TF_AllocatorAttributes": "struct_size on_host",
        "TF_InputRange_Args": "struct_size priv start stop status",
        "TF_RendezvousThunk": "rendezvous send_func async_recv_func start_abort_func",
    },
    "tf_tstring.h": {"TF_TString": "u"},
}


def read_names():
    names, header = {}, None
    with open(os.path.join(HERE, "header_names.txt")) as f:
        for line in f:
            if line.startswith("#"):
                continue
            if not line.startswith(" "):
                header, line = line.split(":", 1)
            names.setdefault(header, []).extend(line.split())
    return names


def is_constant(name):
    return re.fullmatch(r"TFE?_[A-Z0-9_]+", name) is not None


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, "%s\n%s" % (" ".join(command), done.stderr[-4000:])
    return done.stdout


def what_it_declares(compiler, include, header, names, folder):
    """{name: type, value or layout}, as a program that includes the header alone sees it."""
    source = [
        "#include <cstddef>",
        "#include <cstdio>",
        "#include <typeinfo>",
        '#include "tensorflow/c/%s"' % header,
        '#define OFFSET(s, f) std::printf(" %zu", offsetof(s, f))',
        "int main() {",
    ]
    for name in names:
        if is_constant(name):
            source.append('  std::printf("%s %%lld\\n", (long long)(%s));' % (name, name))
        else:
            source.append('  std::printf("%s %%s\\n", typeid(decltype(%s)).name());' % (name, name))
    for name, fields in STRUCTURES.get(header, {}).items():
        source.append('  std::printf("%s %%zu", sizeof(%s));' % (name, name))
        source += ["  OFFSET(%s, %s);" % (name, field) for field in fields.split()] + ['  std::printf("\\n");']
    path = os.path.join(folder, "declares")
    with open(path + ".cc", "w") as f:
        f.write("\n".join(source + ["}\n"]))
    run([compiler, "-std=c++17", "-w", "-I", include, path + ".cc", "-o", path])
    # TensorFlow 2.12 and later name these types by where they are defined.
    lines = run([path]).replace("10TSL_Status", "9TF_Status").replace("8TSL_Code", "7TF_Code").splitlines()
    return dict(line.split(" ", 1) for line in lines)


def what_it_names(compiler, path):
    """The TF_ and TFE_ functions that the text of a header declares for C."""
    text = run([compiler, "-fpreprocessed", "-dD", "-E", "-P", "-x", "c", path])
    return set(re.findall(r"\bTFE?_\w*[a-z]\w*(?=\s*\()", text))


def functions_of(library):
    lines = run(["nm", "-D", "--defined-only", library]).splitlines()
    return {line.split()[-1] for line in lines}


def check_c(compiler, include, names, folder):
    """A C99 program can include them all."""
    path = os.path.join(folder, "all.c")
    with open(path, "w") as f:
        f.write("".join("#include <tensorflow/c/%s>\n" % header for header in names))
    run([compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", "c", "-fsyntax-only", "-I", include, path])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("compiler")
    parser.add_argument("include")
    parser.add_argument("libraries", nargs="+")
    parser.add_argument("--tensorflow", default="")
    args = parser.parse_args()
    names = read_names()
    functions = {name for header in names for name in names[header] if not is_constant(name)}
    functions.remove("TF_InitKernel")  # a plugin's
    for library in args.libraries:
        lacks = functions - functions_of(library)
        assert not lacks, "%s lacks %s" % (library, sorted(lacks))
    with tempfile.TemporaryDirectory() as folder:
        check_c(args.compiler, args.include, names, folder)
        for header in names:
            ours = what_it_declares(args.compiler, args.include, header, names[header], folder)
            if not args.tensorflow:
                continue
            theirs_has = what_it_names(args.compiler, os.path.join(args.tensorflow, "tensorflow/c", header))
            assert theirs_has <= set(names[header]), "%s: header_names.txt lacks %s" % (header, theirs_has - set(names[header]))
            both = [n for n in names[header] if is_constant(n) or n in theirs_has and n != "TFE_NewTensorHandle"]
            theirs = what_it_declares(args.compiler, args.tensorflow, header, both, folder)
            differ = ["%s: %s, TensorFlow's %s" % (n, ours[n], theirs[n]) for n in theirs if ours[n] != theirs[n]]
            assert not differ, "%s:\n%s" % (header, "\n".join(differ))
    print("%d functions in %d headers%s" % (len(functions), len(names), ", as TensorFlow's" if args.tensorflow else ""))


if __name__ == "__main__":
    main()
