"""Options made of types, defaults and docstrings: of commands, and of settings of a recipe."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer import Option

from lc_assets.builds.settings.common import attributes_of
from lc_assets.errors import BadInput
from lc_assets.records import frozen

if TYPE_CHECKING:
    import msgspec


def settings_options(defaults: "msgspec.Struct", *names: str, **flags: str) -> Any:
    """Options for settings of a recipe, with their types, defaults and descriptions; the command
    gets the settings with the values that are given.

    Args:
        defaults: the settings without options.
        names: of settings whose options are called like them.
        flags: options of other settings, by setting.
    """
    return SettingsOptions(defaults, {name: _flag(name) for name in names} | flags)


@frozen
class SettingsOptions:
    """See `settings_options`."""

    defaults: "msgspec.Struct"
    flags: Mapping[str, str]

    def parameters(self) -> list[inspect.Parameter]:
        """A parameter of the command for each option."""
        section = type(self.defaults)
        kinds, meanings = get_type_hints(section), attributes_of(section)
        return [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=getattr(self.defaults, name),
                annotation=_setting(flag, kinds[name], meanings[name]),
            )
            for name, flag in self.flags.items()
        ]

    def __call__(self, **given: Any) -> Any:
        """The settings with the values that are given."""
        from lc_assets.stages.file_lakes import replaced

        try:
            return replaced(self.defaults, **given)
        except BadInput as error:
            name = str(error).rpartition("`$.")[2].partition("`")[0].partition("[")[0]
            if name not in self.flags:
                raise
            raise BadInput(f"{self.flags[name]} {given[name]}: {error}") from error


def parameters_of(of: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a command, or of a class of options. Those that its docstring explains are
    options of their names, unless they say otherwise.
    """
    meanings, found = attributes_of(of), list[inspect.Parameter]()
    for one in inspect.signature(of, eval_str=True).parameters.values():
        kind, meaning = one.annotation, meanings.get(one.name)
        if meaning and hasattr(kind, "__metadata__"):
            kind.__metadata__[0].help = _help(meaning)
        elif meaning:
            kind = _option(_flag(one.name), kind, meaning)
        found.append(one.replace(annotation=kind))
    return found


def _setting(flag: str, kind: Any, meaning: str) -> Any:
    """A setting's type as typer takes it; the settings check the values."""
    choices = None
    if get_origin(kind) is Literal:
        kind, choices = str, "|".join(get_args(kind))
    elif get_origin(kind) is tuple:
        kind = list[get_args(kind)[0]]  # type: ignore[misc]
    return _option(flag, kind, meaning, choices)


def _option(flag: str, kind: Any, meaning: str, choices: str | None = None) -> Any:
    """A type as typer takes it, with a docstring's words."""
    return Annotated[kind, Option(flag, help=_help(meaning), metavar=choices)]


def _help(meaning: str) -> str:
    """Words of a docstring as a sentence; those that begin with a value, such as ``html5``, keep
    its case.
    """
    words = meaning if meaning.startswith("``") else meaning[:1].upper() + meaning[1:]
    return words.replace("``", "")


def _flag(name: str) -> str:
    """The option that is called like a parameter."""
    return f"--{name.replace('_', '-')}"
