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


class ArgumentParser:
    """What reads the text of a flag: here any text, as it is."""

    syntactic_help = ""

    def parse(self, argument: Any) -> Any:
        """The value of a text. ValueError or TypeError where it is none."""
        return argument

    def flag_type(self) -> str:
        """What texts are read as."""
        return "string"


class _FunctionParser(ArgumentParser):
    """A parser that is a function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.parse = function  # type: ignore[assignment]


class ArgumentSerializer:
    """What writes a value as the text of a flag."""

    def serialize(self, value: Any) -> str:
        """The text."""
        return str(value)


class Flag:
    """One flag."""

    def __init__(
        self,
        parser: Any,
        serializer: Any,
        name: str,
        default: Any,
        help_string: Optional[str],
        short_name: Optional[str] = None,
        boolean: bool = False,
        multi: bool = False,
    ) -> None:
        self.parser, self.serializer, self.name, self.default, self.help = parser, serializer, name, default, help_string or ""
        self.short_name, self.boolean, self.multi = short_name, boolean, multi
        self.checks: List[Callable[[], None]] = []  # raise Error where the value, or several flags together, will not do
        self.value, self.present = default, 0
        self.shown = False  # whether absl.flags has it too

    @property
    def value(self) -> Any:
        """The value, which FLAGS.__flags holds as well."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        dict.__setitem__(_VALUES, self.name, value)

    def parse(self, argument: Any) -> None:
        """Takes a value from the command line. Error where it is none."""
        try:
            value = self.parser.parse(argument)
        except (ValueError, TypeError) as error:
            raise Error("flag --%s=%s: %s" % (self.name, argument, error)) from None
        self.value = self.value + value if self.multi and self.present else value
        self.present += 1

    def serialize(self) -> str:
        """What a command line says to give the value; nothing where it is None."""
        if self.value is None:
            return ""
        if self.boolean:
            return "--%s%s" % ("" if self.value else "no", self.name)
        return "--%s=%s" % (self.name, self.serializer.serialize(self.value))

    def flag_type(self) -> str:
        """What texts are read as."""
        return str(self.parser.flag_type())


def _of_absl() -> Any:
    """The flags that the program has defined by absl-py, of which TensorFlow's are a part since 1.5; empty where it does not use that."""
    module = sys.modules.get("absl.flags")
    return {} if module is None else module.FLAGS


class FlagValues:
    """Flags by name. Among those of the program are the ones of absl.flags too, which are read from the command line with them."""

    def __init__(self, of_program: bool = False) -> None:
        self.__dict__.update(_flags={}, _parsed=False, _required=[], _rest=[], _of_program=of_program)
        self.__dict__["__flags"] = _VALUES

    def _others(self) -> Any:
        return _of_absl() if self._of_program else {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if not self._parsed:
            self._parse_where_absl_has_not()
        if name in self._flags:
            return self._flags[name].value
        if name in self._others():
            return self._others()[name].value
        raise AttributeError("Unknown command line flag '%s'" % name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags and name in self._others():
            setattr(self._others(), name, value)
            return
        if name not in self._flags:  # before 1.5 that made one, and programs keep in it what their parts share
            self._flags[name] = Flag(_FunctionParser(type(value)), ArgumentSerializer(), name, value, "set by the program")
        self._flags[name].value = value
        self._flags[name].present += 1
        for check in self._flags[name].checks:
            check()

    def __delattr__(self, name: str) -> None:
        self._flags.pop(name, None)
        _VALUES.pop(name, None)

    def __getitem__(self, name: str) -> Any:
        return self._flags[name] if name in self._flags else self._others()[name]

    def __setitem__(self, name: str, flag: Flag) -> None:
        self._flags[name] = flag

    def __contains__(self, name: str) -> bool:
        return name in self._flags or name in self._others()

    def __iter__(self) -> Any:
        return iter(self._flags)

    def __len__(self) -> int:
        return len(self._flags)

    def __str__(self) -> str:
        return self.get_help()

    def __dir__(self) -> List[str]:
        return list(self._flags)

    def __call__(self, argv: Optional[List[str]] = None, known_only: bool = False) -> List[str]:
        del known_only  # what is no flag stays in the answer, as before 1.5
        return self._parse(sys.argv if argv is None else argv)

    def _parse_where_absl_has_not(self) -> None:
        """Reads the command line, unless absl.flags has read all of these flags from it."""
        others = self._others()
        if self._flags and others and others.is_parsed() and all(flag.shown for flag in self._flags.values()):
            self.mark_as_parsed()
            return
        for flag in self._flags.values():
            flag.present = 0  # lists begin anew
        self._parse_flags()

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
                self._flags[name[2:]].parse("false")
                continue
            if flag is None:
                if name in ("help", "h", "helpfull", "helpshort"):
                    print("flags:\n" + self.get_help())
                    if self._others():
                        print(self._others().get_help())
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
            flag.parse(text)
        for name in self._required:
            if self._flags[name].value is None:
                raise Error("Flag --%s must be specified." % name)
        for flag in self._flags.values():
            for check in flag.checks:
                check()
        rest = self._parse_others(rest)
        self.__dict__["_rest"] = rest[1:]
        return rest

    def _parse_others(self, argv: List[str]) -> List[str]:
        """What absl.flags leaves of the command line that is left."""
        others = self._others()
        if not others or others.is_parsed():
            return argv
        try:
            return list(others(argv or [""], known_only=True))
        except sys.modules["absl.flags"].Error as error:
            raise Error(str(error)) from None


class _FlagValuesWrapper(FlagValues):
    """Flags that another object holds."""

    def __init__(self, flags_object: FlagValues) -> None:
        object.__setattr__(self, "__dict__", flags_object.__dict__)


FLAGS = FlagValues(of_program=True)


def _show_to_absl(flag: Flag) -> None:
    """Makes a flag of the program one of absl.flags too, which reads and writes its value, where the program uses that and it has no other of the name."""
    module: Any = sys.modules.get("absl.flags")
    if module is None or flag.name in module.FLAGS and not hasattr(module.FLAGS[flag.name], "of_tensorflow"):
        return

    class Parser(module.ArgumentParser):  # type: ignore[misc]
        def parse(self, argument: Any) -> Any:
            return argument

    class Shown(module.Flag):  # type: ignore[misc]
        of_tensorflow = flag
        value = property(lambda self: flag.value, lambda self, value: setattr(flag, "value", value))

        def parse(self, argument: Any) -> None:
            try:
                flag.parse(argument)
            except Error as error:
                raise module.IllegalFlagValueError(str(error)) from None
            self.present, self.using_default_value = flag.present, False

    try:
        module.FLAGS[flag.name] = Shown(Parser(), module.ArgumentSerializer(), flag.name, flag.default, flag.help, boolean=flag.boolean, allow_override=True)
        flag.shown = True
    except module.Error:
        pass  # a name that it keeps for itself


def _define(
    name: str,
    default: Any,
    help: Any,
    parse: Callable[[str], Any],
    boolean: bool = False,
    multi: bool = False,
    short_name: Optional[str] = None,
    flag_values: Any = None,
    **unused: Any,
) -> None:
    if default is not None and not boolean and isinstance(default, str) and parse is not str:
        default = parse(default)
    flag = Flag(_FunctionParser(parse), ArgumentSerializer(), name, default, None if help is None else str(help), short_name, boolean, multi)
    flags = FLAGS if flag_values is None else flag_values
    flags._flags[name] = flag
    if short_name is not None:
        flags._flags[short_name] = flag
    if flags is FLAGS:
        _show_to_absl(flag)


def _within(parse: Callable[[Any], Any], lower_bound: Any, upper_bound: Any) -> Callable[[Any], Any]:
    """A parser of numbers within bounds; those that are None bound nothing."""

    def bounded(text: Any) -> Any:
        value = parse(text)
        if lower_bound is not None and value < lower_bound or upper_bound is not None and value > upper_bound:
            raise ValueError(
                "%s is not in the range [%s, %s]" % (value, "-inf" if lower_bound is None else lower_bound, "inf" if upper_bound is None else upper_bound)
            )
        return value

    return bounded


def _integer(text: Any) -> int:
    return int(text, 0) if isinstance(text, str) else int(text)


def _several(parse: Callable[[Any], Any]) -> Callable[[Any], List[Any]]:
    """A parser of one value of a list, or of a default that is a list already."""
    return lambda given: [parse(part) for part in (given if isinstance(given, (list, tuple)) else [given])]


def _boolean(text: Any) -> bool:
    if isinstance(text, (bool, int)):
        return bool(text)
    if text.lower() in ("true", "t", "1", "yes", "y"):
        return True
    if text.lower() in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError("not a boolean")


def DEFINE_string(
    name: Any = None, default: Any = None, help: Any = None, flag_name: Any = None, default_value: Any = None, docstring: Any = None, **more: Any
) -> None:
    """A flag that is a string."""
    _define(name or flag_name, default if default is not None else default_value, help or docstring, str, **more)


def DEFINE_integer(
    name: Any = None,
    default: Any = None,
    help: Any = None,
    flag_name: Any = None,
    default_value: Any = None,
    docstring: Any = None,
    lower_bound: Optional[int] = None,
    upper_bound: Optional[int] = None,
    **more: Any,
) -> None:
    """A flag that is an integer."""
    parse = _within(_integer, lower_bound, upper_bound)
    _define(name or flag_name, default if default is not None else default_value, help or docstring, parse, **more)


def DEFINE_float(
    name: Any = None,
    default: Any = None,
    help: Any = None,
    flag_name: Any = None,
    default_value: Any = None,
    docstring: Any = None,
    lower_bound: Optional[float] = None,
    upper_bound: Optional[float] = None,
    **more: Any,
) -> None:
    """A flag that is a number."""
    value = default if default is not None else default_value
    _define(name or flag_name, float(value) if value is not None else None, help or docstring, _within(float, lower_bound, upper_bound), **more)


def DEFINE_boolean(
    name: Any = None, default: Any = None, help: Any = None, flag_name: Any = None, default_value: Any = None, docstring: Any = None, **more: Any
) -> None:
    """A flag that is true or false."""
    value = default if default is not None else default_value
    kept = value is None or isinstance(value, int) and value not in (0, 1)  # programs have given numbers to flags that are read as numbers
    _define(name or flag_name, value if kept else _boolean(value), help or docstring, _boolean, True, **more)


DEFINE_bool = DEFINE_boolean


def _one_of(values: Any, case_sensitive: bool) -> Callable[[Any], str]:
    """A parser of one of several strings, which are as they are listed."""
    known = {value if case_sensitive else value.lower(): value for value in values}

    def parse(text: Any) -> str:
        found = known.get(text if case_sensitive else text.lower())
        if found is None:
            raise ValueError("value should be one of <%s>" % "|".join(values))
        return str(found)

    return parse


def DEFINE_enum(name: str, default: Any, enum_values: Any, help: Any = None, flag_values: Any = None, case_sensitive: bool = True, **more: Any) -> None:
    """A flag that is one of several strings."""
    _define(name, default, help, _one_of(enum_values, case_sensitive), flag_values=flag_values, **more)


def DEFINE_list(name: str, default: Any, help: Any = None, **more: Any) -> None:
    """A flag that is a list of strings, separated by commas."""
    _define(name, default, help, lambda t: [p.strip() for p in t.split(",")] if isinstance(t, str) and t else list(t or []), **more)


def DEFINE_spaceseplist(name: str, default: Any, help: Any = None, comma_compat: bool = False, **more: Any) -> None:
    """A flag that is a list of strings, separated by spaces, or by commas as well."""
    _define(name, default, help, lambda t: (t.replace(",", " ") if comma_compat else t).split() if isinstance(t, str) else list(t), **more)


def DEFINE_multi_string(name: str, default: Any, help: Any = None, **more: Any) -> None:
    """A flag that may be given several times: the list of its values."""
    _define(name, default, help, _several(str), multi=True, **more)


def DEFINE_multi_integer(name: str, default: Any, help: Any = None, lower_bound: Optional[int] = None, upper_bound: Optional[int] = None, **more: Any) -> None:
    """A flag that may be given several times: the list of its integers."""
    _define(name, _listed(default), help, _several(_within(_integer, lower_bound, upper_bound)), multi=True, **more)


def DEFINE_multi_float(
    name: str, default: Any, help: Any = None, lower_bound: Optional[float] = None, upper_bound: Optional[float] = None, **more: Any
) -> None:
    """A flag that may be given several times: the list of its numbers."""
    _define(name, _listed(default), help, _several(_within(float, lower_bound, upper_bound)), multi=True, **more)


def DEFINE_multi_enum(name: str, default: Any, enum_values: Any, help: Any = None, flag_values: Any = None, case_sensitive: bool = True, **more: Any) -> None:
    """A flag that may be given several times, each time one of several strings: the list of them."""
    _define(name, default, help, _several(_one_of(enum_values, case_sensitive)), multi=True, flag_values=flag_values, **more)


def _listed(default: Any) -> Any:
    return default if default is None or isinstance(default, (str, list)) else list(default) if isinstance(default, tuple) else [default]


def register_multi_flags_validator(
    flag_names: Any, multi_flags_checker: Callable[[Any], Any], message: str = "Flags validation failed", flag_values: Any = None
) -> None:
    """Makes it an error that a function of {name: value} of some flags answers false."""
    flags = FLAGS if flag_values is None else flag_values

    def check() -> None:
        values = {name: flags._flags[name].value for name in flag_names}
        if not multi_flags_checker(values):
            raise Error("%s: %s" % (", ".join("flag --%s=%s" % pair for pair in values.items()), message))

    for name in flag_names:
        flags._flags[name].checks.append(check)


def register_validator(flag_name: str, checker: Callable[[Any], Any], message: str = "Flag validation failed", flag_values: Any = None) -> None:
    """Makes it an error that a function of a flag's value answers false."""
    register_multi_flags_validator([flag_name], lambda values: checker(values[flag_name]), message, flag_values)


def validator(flag_name: str, message: str = "Flag validation failed", flag_values: Any = None) -> Callable[[Any], Any]:
    """A decorator: register_validator of the function."""

    def decorate(checker: Any) -> Any:
        register_validator(flag_name, checker, message, flag_values)
        return checker

    return decorate


def multi_flags_validator(flag_names: Any, message: str = "Flags validation failed", flag_values: Any = None) -> Callable[[Any], Any]:
    """A decorator: register_multi_flags_validator of the function."""

    def decorate(checker: Any) -> Any:
        register_multi_flags_validator(flag_names, checker, message, flag_values)
        return checker

    return decorate


def declare_key_flag(flag_name: str, flag_values: Any = None) -> None:
    """Names a flag that matters to a module; the help has them all."""
    (FLAGS if flag_values is None else flag_values)[flag_name]


def adopt_module_key_flags(module: Any, flag_values: Any = None) -> None:
    """Takes the flags of another module as this one's; the help has them all."""
    del module, flag_values  # there is one help for all modules


def mark_flag_as_required(flag_name: str, flag_values: Any = None) -> None:
    """Makes it an error not to give a flag."""
    (FLAGS if flag_values is None else flag_values)._required.append(flag_name)


def mark_flags_as_required(flag_names: Any, flag_values: Any = None) -> None:
    """mark_flag_as_required of several."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)


def _mark_exclusive(flag_names: Any, required: bool, flag_values: Any, given: Callable[[Any], bool], what: str) -> None:
    message = "%s one of (%s) must %s." % ("Exactly" if required else "At most", ", ".join(flag_names), what)

    def fits(values: Dict[str, Any]) -> bool:
        count = sum(given(value) for value in values.values())
        return count == 1 or not required and count == 0

    register_multi_flags_validator(flag_names, fits, message, flag_values)


def mark_flags_as_mutual_exclusive(flag_names: Any, required: bool = False, flag_values: Any = None) -> None:
    """Makes it an error to give more than one of several flags, and where one is required, none of them."""
    _mark_exclusive(flag_names, required, flag_values, lambda value: value is not None, "have a value other than None")


def mark_bool_flags_as_mutual_exclusive(flag_names: Any, required: bool = False, flag_values: Any = None) -> None:
    """Makes it an error that more than one of several flags is true, and where one is required, none of them."""
    _mark_exclusive(flag_names, required, flag_values, bool, "be True")


def DEFINE_alias(name: str, original_name: str, flag_values: Any = None, module_name: Optional[str] = None) -> None:
    """Another name of a flag."""
    del module_name  # there is one help for all modules
    flags = FLAGS if flag_values is None else flag_values
    flags._flags[name] = flags._flags[original_name]
