# SPDX-License-Identifier: Apache-2.0
"""tf.flags: command-line flags, read on first use."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional


class Error(Exception):
    """A flag is wrong or missing."""


IllegalFlagValueError = UnparsedFlagAccessError = UnrecognizedFlagError = Error


class _Values(Dict[str, Any]):
    """What programs find in FLAGS.__flags: values by name; writing changes the flag."""

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name in FLAGS:
            FLAGS[name].value = value


_VALUES = _Values()


class Flag:
    """One flag."""

    def __init__(self, name: str, default: Any, help: str, parse: Callable[[str], Any], boolean: bool = False) -> None:
        self.name, self.default, self.help, self.parse, self.boolean = name, default, help, parse, boolean
        self.value, self.present = default, 0

    @property
    def value(self) -> Any:
        """The value, which FLAGS.__flags holds as well."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        dict.__setitem__(_VALUES, self.name, value)

    def set(self, text: Any) -> None:
        """Takes a value from the command line."""
        try:
            self.value = self.parse(text)
        except (ValueError, TypeError) as error:
            raise Error("flag --%s=%s: %s" % (self.name, text, error)) from None
        self.present += 1


class _FlagValues:
    """The flags by name."""

    def __init__(self) -> None:
        self.__dict__.update(_flags={}, _parsed=False, _required=[], _rest=[])
        self.__dict__["__flags"] = _VALUES

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if not self._parsed:
            self._parse_flags()
        if name not in self._flags:
            raise AttributeError("Unknown command line flag '%s'" % name)
        return self._flags[name].value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:  # before 1.5 that made one, and programs keep in it what their parts share
            self._flags[name] = Flag(name, value, "set by the program", type(value))
        self._flags[name].value = value
        self._flags[name].present += 1

    def __delattr__(self, name: str) -> None:
        self._flags.pop(name, None)
        _VALUES.pop(name, None)

    def __getitem__(self, name: str) -> Flag:
        return self._flags[name]

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __iter__(self) -> Any:
        return iter(self._flags)

    def __len__(self) -> int:
        return len(self._flags)

    def __dir__(self) -> List[str]:
        return list(self._flags)

    def __call__(self, argv: Optional[List[str]] = None, known_only: bool = False) -> List[str]:
        return self._parse(sys.argv if argv is None else argv)

    def _parse_flags(self, args: Optional[List[str]] = None) -> Dict[str, Any]:
        self._parse([sys.argv[0] if sys.argv else ""] + list(sys.argv[1:] if args is None else args))
        return self.flag_values_dict()

    def flag_values_dict(self) -> Dict[str, Any]:
        """The values by name."""
        return {n: f.value for n, f in self._flags.items()}

    def is_parsed(self) -> bool:
        """Whether the command line was read."""
        return bool(self._parsed)

    def mark_as_parsed(self) -> None:
        """Uses the defaults: the command line is not read."""
        self.__dict__["_parsed"] = True

    def set_default(self, name: str, value: Any) -> None:
        """Changes a default."""
        flag = self._flags[name]
        flag.default = value
        if not flag.present:
            flag.value = value

    def get_help(self) -> str:
        """A text about all flags."""
        return "\n".join(
            "  --%s%s: %s (default: %r)" % ("[no]" if f.boolean else "", f.name, f.help, f.default) for f in sorted(self._flags.values(), key=lambda f: f.name)
        )

    def _parse(self, argv: List[str]) -> List[str]:
        self.__dict__["_parsed"] = True
        rest, index = [argv[0]] if argv else [], 1
        while index < len(argv):
            arg = argv[index]
            index += 1
            if arg == "--":
                rest.extend(argv[index:])
                break
            if not arg.startswith("-") or arg in ("-",):
                rest.append(arg)
                continue
            name, equals, text = arg.lstrip("-").partition("=")
            name = name.replace("-", "_") if name.replace("-", "_") in self._flags else name
            flag = self._flags.get(name)
            if flag is None and name.startswith("no") and name[2:] in self._flags and self._flags[name[2:]].boolean:
                self._flags[name[2:]].set("false")
                continue
            if flag is None:
                if name in ("help", "h", "helpfull", "helpshort"):
                    print("flags:\n" + self.get_help())
                    raise SystemExit(0)
                rest.append(arg)
                continue
            if flag.boolean and not equals:
                nxt = argv[index].lower() if index < len(argv) else ""
                if nxt in ("true", "false"):
                    text, index = nxt, index + 1
                else:
                    text = "true"
            elif not equals:
                if index >= len(argv):
                    raise Error("Missing value for flag --%s" % name)
                text, index = argv[index], index + 1
            flag.set(text)
        for name in self._required:
            if self._flags[name].value is None:
                raise Error("Flag --%s must be specified." % name)
        self.__dict__["_rest"] = rest[1:]
        return rest


FLAGS = _FlagValues()


def _define(name: str, default: Any, help: Any, parse: Callable[[str], Any], boolean: bool = False) -> None:
    if default is not None and not boolean and isinstance(default, str) and parse is not str:
        default = parse(default)
    FLAGS._flags[name] = Flag(name, default, "" if help is None else str(help), parse, boolean)


def _boolean(text: Any) -> bool:
    if isinstance(text, (bool, int)):
        return bool(text)
    if text.lower() in ("true", "t", "1", "yes", "y"):
        return True
    if text.lower() in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError("not a boolean")


def DEFINE_string(
    name: Any = None, default: Any = None, help: Any = None, flag_name: Any = None, default_value: Any = None, docstring: Any = None, **unused: Any
) -> None:
    """A flag that is a string."""
    _define(name or flag_name, default if default is not None else default_value, help or docstring, str)


def DEFINE_integer(
    name: Any = None, default: Any = None, help: Any = None, flag_name: Any = None, default_value: Any = None, docstring: Any = None, **unused: Any
) -> None:
    """A flag that is an integer."""
    _define(name or flag_name, default if default is not None else default_value, help or docstring, lambda t: int(t, 0) if isinstance(t, str) else int(t))


def DEFINE_float(
    name: Any = None, default: Any = None, help: Any = None, flag_name: Any = None, default_value: Any = None, docstring: Any = None, **unused: Any
) -> None:
    """A flag that is a number."""
    value = default if default is not None else default_value
    _define(name or flag_name, float(value) if value is not None else None, help or docstring, float)


def DEFINE_boolean(
    name: Any = None, default: Any = None, help: Any = None, flag_name: Any = None, default_value: Any = None, docstring: Any = None, **unused: Any
) -> None:
    """A flag that is true or false."""
    value = default if default is not None else default_value
    kept = value is None or isinstance(value, int) and value not in (0, 1)  # programs have given numbers to flags that are read as numbers
    _define(name or flag_name, value if kept else _boolean(value), help or docstring, _boolean, True)


DEFINE_bool = DEFINE_boolean


def DEFINE_enum(name: str, default: Any, enum_values: Any, help: Any = None, **unused: Any) -> None:
    """A flag that is one of several strings."""

    def parse(text: str) -> str:
        if text not in enum_values:
            raise ValueError("value should be one of <%s>" % "|".join(enum_values))
        return text

    _define(name, default, help, parse)


def DEFINE_list(name: str, default: Any, help: Any = None, **unused: Any) -> None:
    """A flag that is a list of strings, separated by commas."""
    _define(name, default, help, lambda t: [p.strip() for p in t.split(",")] if isinstance(t, str) and t else list(t or []))


def DEFINE_multi_string(name: str, default: Any, help: Any = None, **unused: Any) -> None:
    """A flag that may be given several times."""
    _define(name, default, help, lambda t: [t] if isinstance(t, str) else list(t))


def mark_flag_as_required(flag_name: str, flag_values: Any = None) -> None:
    """Makes it an error not to give a flag."""
    (FLAGS if flag_values is None else flag_values)._required.append(flag_name)


def mark_flags_as_required(flag_names: Any, flag_values: Any = None) -> None:
    """mark_flag_as_required of several."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)
