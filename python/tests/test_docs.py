# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ are true: their programs run, their commands exist, their links lead somewhere, and every setting is told."""

import glob
import os
import re
import shutil
import subprocess
import sys

import pytest

import millrace as tf
from millrace import cli

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DOCS = os.path.join(ROOT, "docs")
PAGES = sorted(glob.glob(os.path.join(DOCS, "*.md")))
DECISIONS = sorted(glob.glob(os.path.join(DOCS, "decisions", "*.md")))
READMES = [os.path.join(ROOT, p) for p in ("README.md", "CONTRIBUTING.md", "python/README.md", "src/README.md", "examples/python/README.md")]


def _digits_in_records(folder):
    """What the program of python.md writes."""
    with tf.python_io.TFRecordWriter(str(folder / "digits.tfrecord")) as writer:
        for i in range(256):
            image, number = tf.train.FloatList(value=[0.5] * 64), tf.train.Int64List(value=[i % 10])
            features = tf.train.Features(feature={"image": tf.train.Feature(float_list=image), "number": tf.train.Feature(int64_list=number)})
            writer.write(tf.train.Example(features=features).SerializeToString())


def _library_of_an_op(folder):
    """By the page's own line, where there is a compiler."""
    if shutil.which("g++") is None:
        pytest.skip("skipped: no compiler")
    shutil.copy(os.path.join(ROOT, "examples", "custom_op", "log_cosh.cc"), folder)
    (lines,) = (b for b in _blocks(os.path.join(DOCS, "custom_ops.md"), "") if "g++" in b)
    surroundings = {**os.environ, "CPATH": os.path.join(ROOT, "include")}  # a package that was not installed has no headers
    made = subprocess.run(["bash", "-ec", lines.replace("python", sys.executable)], cwd=folder, env=surroundings, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr


_FILES = {"cpp.md": _digits_in_records, "custom_ops.md": _library_of_an_op}


def _text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _blocks(path, language):
    return [block for named, block in re.findall(r"^```(\w*)\n(.*?)^```$", _text(path), re.M | re.S) if named == language]


def _pages_with(language):
    return [pytest.param(p, id=os.path.basename(p)) for p in PAGES if _blocks(p, language) and os.path.basename(p) != "devices.md"]


@pytest.mark.parametrize("page", _pages_with("python"))
def test_python_of_a_page_runs(page, tmp_path):
    _FILES.get(os.path.basename(page), lambda folder: None)(tmp_path)
    program = "\n".join(_blocks(page, "python"))  # each goes on where the one before it ends; nothing stands before the first
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", _pages_with("cpp"))
def test_cpp_of_a_page_runs(page, tmp_path):
    library = os.path.realpath(os.path.join(tf.sysconfig.get_lib(), "libmillrace.so"))
    includes = [os.path.join(ROOT, "include"), os.path.join(os.path.dirname(library), "..", "include")]
    compiler = shutil.which("c++")
    if compiler is None or not os.path.exists(os.path.join(includes[1], "millrace", "ops.h")):
        pytest.skip("skipped: no compiler or no build folder")
    _FILES.get(os.path.basename(page), lambda folder: None)(tmp_path)
    for i, block in enumerate(b for b in _blocks(page, "cpp") if "int main" in b):
        source, program = str(tmp_path / ("p%d.cc" % i)), str(tmp_path / ("p%d" % i))
        with open(source, "w") as file:
            file.write(block)
        subprocess.run(
            [
                compiler,
                "-std=c++20",
                "-Wall",
                source,
                "-o",
                program,
                *("-I" + d for d in includes),
                "-L" + os.path.dirname(library),
                "-lmillrace",
                "-Wl,-rpath," + os.path.dirname(library),
            ],
            check=True,
            timeout=300,
        )
        assert subprocess.run([program], cwd=tmp_path, timeout=100).returncode == 0
        if shutil.which("clang++"):  # with this system's C++ library, which may lack for it what it has for g++
            subprocess.run(["clang++", "-std=c++20", "-fsyntax-only", "-Wall", source, *("-I" + d for d in includes)], check=True, timeout=300)


def test_pages_say_how_large_the_library_is(tmp_path):
    if shutil.which("strip") is None:
        pytest.skip("skipped: no strip")
    library = os.path.realpath(os.path.join(tf.sysconfig.get_lib(), "libmillrace.so"))
    subprocess.run(["strip", "-o", str(tmp_path / "stripped.so"), library], check=True)
    size = os.path.getsize(tmp_path / "stripped.so") / 1e6
    for page, said in (("cpp.md", r"one file of (\d+) MB \(stripped\)"), ("index.md", r"one library of (\d+) MB")):
        (told,) = re.findall(said, _text(os.path.join(DOCS, page)))
        assert abs(int(told) - size) < 1, "%s: %s MB, it has %.1f" % (page, told, size)


def test_the_op_of_a_page_is_that_of_the_example():
    example = _text(os.path.join(ROOT, "examples", "custom_op", "log_cosh.cc")).replace("}  // namespace\n\n", "")
    blocks = _blocks(os.path.join(DOCS, "custom_ops.md"), "cpp")
    assert len(blocks) == 3 and all(block in example for block in blocks)


def test_c_of_a_page_runs_a_saved_model(tmp_path):
    library = os.path.dirname(os.path.realpath(os.path.join(tf.sysconfig.get_lib(), "libmillrace.so")))
    compiler = shutil.which("cc")
    if compiler is None or not os.path.exists(os.path.join(library, "libtensorflow.so.2")):
        pytest.skip("skipped: no compiler or no build folder")
    (block,) = _blocks(os.path.join(DOCS, "from_tensorflow.md"), "c")
    (tmp_path / "program.c").write_text(block)
    options = ["-Wall", "-Wextra", "-Werror", "-I" + os.path.join(ROOT, "include"), os.path.join(library, "libtensorflow.so.2"), "-Wl,-rpath," + library]
    subprocess.run([compiler, "program.c", *options], cwd=tmp_path, check=True, timeout=300)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        tf.saved_model.simple_save(session, str(tmp_path / "saved_model"), {"x": x}, {"y": tf.multiply(x, 3.0, name="y")})
    ran = subprocess.run(["./a.out", "saved_model"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (ran.returncode, ran.stdout) == (0, "3 6\n"), ran.stderr
    missing = subprocess.run(["./a.out", "nothing"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert missing.returncode == 1 and "nothing" in missing.stderr


@pytest.mark.parametrize("page", [pytest.param(p, id=os.path.relpath(p, ROOT)) for p in PAGES + DECISIONS + READMES])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", _text(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        assert os.path.exists(file), "%s: %s" % (page, target)
        if anchor:
            headings = [re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", _text(file), re.M)]
            assert anchor in headings, "%s: %s" % (page, target)


def test_commands_of_pages_exist(capsys):
    used = {m for p in PAGES + READMES for b in _blocks(p, "") for m in re.findall(r"^millrace (\w+)", b, re.M)}
    used |= {m for p in PAGES for m in re.findall(r"`millrace ([a-z]+)", _text(p))}
    assert {"trace", "convert", "inspect", "doctor"} <= used
    for command in sorted(used):
        with pytest.raises(SystemExit) as end:
            cli.main([command, "--help"])
        assert end.value.code == 0 and "usage" in capsys.readouterr().out


def test_the_site_has_every_page():
    nav = set(re.findall(r": (\w+\.md)$", _text(os.path.join(ROOT, "mkdocs.yml")), re.M))
    assert nav == {os.path.basename(p) for p in PAGES}
    start = _text(os.path.join(DOCS, "index.md"))
    assert all("(%s" % page in start for page in nav - {"index.md"})


def test_the_site_has_what_its_pages_lead_to(tmp_path):
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "site_pages.py"), str(tmp_path), "CONTRIBUTING.md", "src/README.md"], check=True)
    pages = [os.path.join(at, name) for at, _, names in os.walk(tmp_path) for name in names if name.endswith(".md")]
    assert {"source/include/millrace/c_api.h.md", "source/CONTRIBUTING.md", "decisions/README.md", "cpp.md"} <= {os.path.relpath(p, tmp_path) for p in pages}
    for page in pages:
        text = re.sub(r"^```.*?^```$", "", _text(page), flags=re.M | re.S)  # where `[](int x)` is no link
        for target in re.findall(r"\]\((?![a-z]+:|#)([^)\s#]+)[)#]", text):
            found = os.path.normpath(os.path.join(os.path.dirname(page), target))
            assert os.path.exists(found) and found.startswith(str(tmp_path)), "%s: %s" % (page, target)


def test_lists_of_the_site_stand_apart_from_paragraphs(tmp_path):
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "site_pages.py"), str(tmp_path), "CONTRIBUTING.md"], check=True)
    assert "What falls short, and why:\n\n- **" in (tmp_path / "benchmarks.md").read_text()
    for path in tmp_path.rglob("*.md"):
        text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
        assert not re.search(r"^[A-Za-z*`(].*\n(- |\d+\. )", text, re.M), path


def test_the_site_needs_no_other_host():
    settings = _text(os.path.join(ROOT, "mkdocs.yml"))
    assert "https://" not in settings and re.search(r"^  font: false", settings, re.M)  # otherwise the theme takes fonts from afar
    assert "polyfills: [js/iframe-worker.js]" in settings  # otherwise the theme takes its own from afar
    assert os.path.exists(os.path.join(DOCS, "js", "iframe-worker.js"))


def test_decisions_are_listed():
    listed = dict(re.findall(r"^\| \[\d{4}\]\((\S+)\) \| (.*) \|$", _text(os.path.join(DOCS, "decisions", "README.md")), re.M))
    titles = {os.path.basename(p): _text(p).splitlines()[0].partition(": ")[2] for p in DECISIONS if not p.endswith("README.md")}
    assert listed == titles


def test_the_reference_tells_of_public_names(tmp_path):
    made = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "api_reference.py"), str(tmp_path)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    pages = {os.path.basename(p): _text(p) for p in glob.glob(str(tmp_path / "*.md"))}
    for page, heading, code in (
        ("nn.md", "tf.nn.conv2d", "conv2d(input, filter=None, strides=None, padding=None,"),
        ("train.md", "tf.train.AdamOptimizer", "AdamOptimizer(learning_rate=0.001, beta1=0.9,"),
        ("tf.md", "tf.while_loop", "while_loop(cond, body, loop_vars,"),
        ("raw_ops.md", "tf.raw_ops.Conv2D", "Conv2D(input, filter, strides, padding,"),
    ):
        text = pages[page][pages[page].index(">%s</h3>" % heading) :]
        assert code in text[: text.index("<h3")] if "<h3" in text else text
    for page, text in pages.items():
        assert "](%s)" % page in pages["index.md"] or page == "index.md"
        assert set(re.findall(r"\]\(#([^)]*)\)", text)) == set(re.findall(r'<h3 id="([^"]*)"', text)), page
    assert "at_user_line" not in pages["nn.md"] and "get_variable" not in pages["nn_rnn_cell.md"]


def test_the_c_reference_has_every_function(tmp_path):
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "c_reference.py"), str(tmp_path)], check=True)
    index = _text(str(tmp_path / "index.md"))
    told = dict(re.findall(r"\[(\w+)\]\((\w+\.md)#\1\)", index))
    headers = glob.glob(os.path.join(ROOT, "include", "millrace", "c_api*.h"))
    functions = {f for h in headers for f in re.findall(r"^TF_CAPI_EXPORT[^(;]*?\b(\w+)\(", _text(h), re.M)}
    assert len(functions) > 300 and functions - set(told) == set()
    for name, page in told.items():
        assert 'id="%s"' % name in _text(str(tmp_path / page)), name
    pages = _text(str(tmp_path / "c_api_session.md"))
    declared = re.search(r'id="TF_NewSession">.*?\n\n(.*?)\n\n```c\n(.*?)\n```', pages, re.S)
    assert "`opts` may be NULL" in declared.group(1) and declared.group(2).startswith("TF_Session* TF_NewSession(")


def test_each_op_has_a_page(tmp_path):
    opgen = os.path.join(ROOT, "build", "release", "bin", "opgen")
    if not os.path.exists(opgen):
        pytest.skip("the tools are not built")
    subprocess.run([opgen, "--docs", str(tmp_path)], check=True)
    product = _text(str(tmp_path / "MatMul.md"))
    for part in ("| `a` | `T` |", "| `transpose_a` | bool | `false` |", "## Gradient\nDifferentiable.", "| CPU | `T`: "):
        assert part in product, product
    assert "float" in re.search(r"\| `T` \| type: ([^|]*) \|", product).group(1)
    shape = _text(str(tmp_path / "Shape.md"))
    assert re.search(r"## Gradient\nNone flows: \w", shape) and "`int32`" not in shape
    index = _text(str(tmp_path / "index.md"))
    listed = set(re.findall(r"\[(\w+)\]\(\1\.md\)", index))
    assert listed | {"index"} == {os.path.splitext(n)[0] for n in os.listdir(tmp_path)} and len(listed) > 900
    schemas = set(re.findall(r"^([A-Z]\w*)\(", _text(os.path.join(DOCS, "op_schemas.txt")), re.M))
    assert schemas == listed
