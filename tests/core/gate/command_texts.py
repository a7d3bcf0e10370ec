"""Shell texts that are made by chance: wrappers, redirections, substitutions, and programs with
their options in any order. In each, something may write, so that it matters how it is read.
"""

import random
import re

# For each program its options, and after the bar what else it is given: words with which it reads,
# words with which it writes or runs `touch m`, and values that look like options. `_` is a blank,
# `@` one of `ODD_WORDS`. Nothing here reaches beyond the directory.
VOCABULARY = {
    "cat": "-n -A | a b/c - m",
    "wc": "-l --files0-from=a | a",
    "grep": "-r -n -f -e --pager=touch | touch . a",
    "diff": "-u -r | a b/c b",
    "printf": "-v_m -- | %s %d 'a[$(touch${IFS}m)]' a",
    "test": "-v -n -eq -o = | 'a[$(touch${IFS}m)]' a 1",
    "read": "-r -a -p -u -t_0 | x PATH 'a[$(touch${IFS}m)]'",
    "declare": "-i -x -n | x=1 'x=a[$(touch${IFS}m)]' PATH=.",
    "unset": "-v | x PATH 'a[$(touch${IFS}m)]'",
    "set": "-e -x -o_pipefail -- | a",
    "cd": "-P | b . -",
    "sort": "-u -k_1 -k -t -o -om -uo --output=m --outp -T_. -r -S_1 --files0-from=a -t_-o"
    " --compress-program=touch | a b/c m",
    "uniq": "-c -d -f_1 -f -u --count --skip-fields=1 | a m",
    "shuf": "-e -n_1 -o --output=m -i_1-3 | a m",
    "tee": "-a -i -p --append | /dev/null /dev/stderr m",
    "dd": "| if=a of=m of=/dev/null bs=1 count=1 conv=notrunc status=none",
    "sed": "-n -e -i -s -E -f --in-place=x --posix -z -u --expression=p -l_5 -e_p | p 's/t/b/'"
    " w_m 1wm 's/t/b/wm' 1p a b/c '1etouch${IFS}m' '1{p;q}' '$!N' 's/[/]t/b/'",
    "awk": "-v_x=1 -F_: -f -F | {print} '{print>\"m\"}' 'BEGIN{system(\"touch${IFS}m\")}' a"
    " '{print|\"sh\"}' '{print$1>1}'",
    "find": "-D_exec -D -O1 -H -L . b | -name_a -type_f -name_@ -exec_cat_@_\\; -exec_ls_{}_+"
    " -exec_echo_@_@_\\; -exec_echo_@_@_@_\\; -exec -ok -execdir_cat_@_{}_+ touch_m {} \\; +"
    " -delete -fprint_m -o -not \\( \\) -newer -print -files0-from -quit -prune -maxdepth_1"
    " -printf_x -depth @ -fls_/dev/null -name",
    "xargs": "-I{} -I_% -i -L1 -L_1 -n1 -n_2 -n2 -0 -r -t -P2 -d_x -s_99 -E -a_a --replace"
    " --max-args=2 --max-lines=1 | cat env echo {} % find tee sort touch_m nice bash_-c",
    "env": "-i -u_x -C_b x=1 PATH=. -S -0 --chdir=b | touch_m cat a",
    "gzip": "-c -d -t -l -k -f -z -q -v -1 --stdout --list --test --keep -S_.x -n | a z.gz",
    "gunzip": "-c -d -t -l -k -f -q --stdout --list -S | z.gz",
    "bzip2": "-c -d -t -k -f -z -q -v -1 --stdout --test --keep | a z.bz2",
    "bunzip2": "-c -d -t -k -f -z --stdout | z.bz2",
    "xz": "-c -d -t -l -k -f -z -q -v -1 --stdout --list --test --decompress --files=a | a z.xz",
    "unxz": "-c -d -t -l -k -f -z --stdout --list | z.xz",
    "tar": "t tf x xf c cf -t -f -x -c -tf -xf -z -v -C_b --to-command=touch --list --extract"
    " -T_a --file=a.tar | a.tar m",
    "base64": "-d -w_0 -i -o --decode | a m",
    "iconv": "-f_utf-8 -t -o -c -l --output=m | a m",
    "xxd": "-r -p -l_4 -s_1 -c_2 -u -i | a m",
    "date": "-u -d_now -r_a -Iseconds | +%s",
    "git": "-C_. -c_core.pager=touch -c_color.ui=never --no-pager -p | status log show diff branch"
    " tag stash list m --output=m --output -- HEAD a config user.name x remote -v grep -Otouch ada"
    " --ext-diff -l cat-file -p reflog expire ls-files rev-parse worktree add symbolic-ref"
    " ls-remote help --textconv --get-regexp --unset -d",
    "python3": "-I -B -m_json.tool -m_pip -c -V --version | j.json m list a --indent_2",
    "jq": "-r -n --args | . j.json",
    "file": "-b -C -m -i | a m",
    "less": "-N -o -S | a +!touch m",
    "hexdump": "-C -n_4 | a",
    "comm": "-1 | a b/c",
    "zcat": "-f | z.gz",
}
ODD_WORDS = (
    *('"${y:-;}"', "$(echo \\;)", "{\\;,-delete}", "-delete", "-fprint m", "-name", "{}", "+", "a"),
    *('"$y"', "-exec", "-o", "$y", "*", "{a,b}", "\\;"),
)
WRAPPERS = (
    *("command", "env", "env x=1", "nice", "nice -n 1", "timeout 5", "stdbuf -oL", "setsid", "!"),
    *(
        "time",
        "time -p",
        "builtin",
        "exec",
        "xargs",
        "xargs -n1",
        "xargs -I{}",
        "env -u x",
        "nohup",
    ),
    *("find . -exec", "noglob", "time -f %e", "timeout -k 1 5", "xargs -0 -r", "xargs -a a"),
)
_RISKY = re.compile(r"touch|\bm\b|-d|>|PATH|-o\b|xargs.*(?:env|nice|tee)|x=|find.*-D")
SHELLS = ("bash -c", "sh -c", "eval", "xargs bash -c", "bash -euo pipefail -c", "env bash -lc")
_WEIGHTS = {"xargs": 16, "find": 8, "git": 4, "sed": 3, "xz": 3, "bzip2": 3, "gzip": 2, "sort": 2}
"""How often a program is taken, where the order of its words matters more than with others."""


class CommandTexts:
    """Makes shell texts from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def text(self) -> str:
        """A text with something in it that may write or run what is written."""
        while not _RISKY.search(text := self.any_text()):
            pass
        return text

    def any_text(self) -> str:
        """A text, sometimes with a character too many or one too few."""
        made = self.program(1) if self.random.random() < 0.75 else self.commands(3)
        if self.random.random() < 0.9:
            return made
        at = self.random.randrange(len(made))
        return made[:at] + self.pick(*"'\"`$\\(){}\n;&|<>#") + made[at + self.random.randrange(2) :]

    def program(self, depth: int) -> str:
        """A program with some of its words, maybe in something that runs it or feeds it."""
        [name] = self.random.choices(
            list(VOCABULARY), [_WEIGHTS.get(name, 1) for name in VOCABULARY]
        )
        options, _, others = (part.split() for part in VOCABULARY[name].partition("|"))
        words = self.random.sample(options, min(len(options), self.random.randrange(4)))
        words += [self.pick(*others) for _ in range(self.random.randrange(4))]
        if self.random.random() < 0.2:
            words.insert(self.random.randrange(len(words) + 1), self.pick("--", self.word(depth)))
        if self.random.random() < 0.2:
            self.random.shuffle(words)
        text = "".join(
            {"_": " ", "@": self.pick(*ODD_WORDS)}.get(char, char)
            for char in " ".join((name, *words))
        )
        match self.random.randrange(10):
            case 0 | 1:
                wrapper = self.pick(*WRAPPERS)
                end = self.pick(" \\;", " {} +", " {} \\;") if wrapper.startswith("find") else ""
                return f"{wrapper} {text}{end}"
            case 2:
                return f"echo {self.pick('touch m', '-delete', 'a', '; touch m')} | {text}"
            case 3:
                return f"{self.pick(*SHELLS)} {self.quoted(text)}"
            case _:
                return text

    def quoted(self, text: str) -> str:
        return "'" + text.replace("'", "'\\''") + "'"

    def word(self, depth: int) -> str:
        literal = self.pick("a", "-n", "m", "*", "~", "{a,b}", "-o", "E", "}", "]]", "#", "=", "[")
        if depth <= 0:
            return literal
        hidden = self.pick("$(touch m)", "`touch m`", "a b", '"', ";touch m;", "a[$(touch m)]")
        expanded = self.pick("x", "x:-a", "#x", "x@P", "!x", "x:x", "x[0]", "x^^", "x/a/b", "x=m")
        match self.random.randrange(14):
            case 0:
                return f"'{hidden}'"
            case 1:
                return f"${{{expanded}}}"
            case 2:
                return f"\\{self.pick('a', '$', '`', ' ', chr(10), ';', '(')}"
            case 3:
                return "$'" + self.pick("a", "\\n", "\\x41", "\\'", "$(touch m)") + "'"
            case 4:
                return f"$({self.commands(depth - 1)})"
            case 5:
                return f'"$({self.commands(depth - 1)})"'
            case 6:
                inner = self.commands(depth - 1).replace("\\", "\\\\").replace("`", "\\`")
                return f"`{inner}`"
            case 7:
                return f"{self.pick('<', '>')}({self.commands(depth - 1)})"
            case 8:
                return f"${{x{self.pick(':-', '-', ':=', '+', '#', '/')}{self.word(depth - 1)}}}"
            case 9:
                return f'"{self.word(depth - 1)}"'
            case 10:
                return f"$(({self.word(depth - 1)}))"
            case 11:
                return self.word(depth - 1) + self.word(depth - 1)
            case 12:
                return self.quoted(self.commands(depth - 1))
            case _:
                return literal

    def simple(self, depth: int) -> str:
        words = " ".join(self.word(depth) for _ in range(self.random.randrange(3)))
        if depth <= 0:
            return self.pick("touch m", "true", "echo a")
        match self.random.randrange(12):
            case 0:
                return "touch m"
            case 1:
                delimiter = self.pick("E", "'E'", "\\E", '"E"')
                after = self.pick("", f"; {self.simple(depth - 1)}", f" {self.word(depth - 1)}")
                return f"cat <<{delimiter}{after}\n{self.word(depth)}\nE\n"
            case 2:
                return f"{self.pick('x', 'PATH', 'RANDOM')}={self.word(depth)} {words}"
            case 3:
                target = self.pick("/dev/null", "m", "1", "-", self.word(depth - 1))
                return f"echo {words} {self.pick('>', '2>', '&>', '>&', '<>', '<', '<<<')}{target}"
            case 4:
                return f"{self.pick(*WRAPPERS)} {self.simple(depth - 1)}"
            case 5:
                return f"{self.pick(*SHELLS)} {self.quoted(self.commands(depth - 1))}"
            case 6:
                tested = self.pick("==", "-eq", "=~", "&&", "<")
                return f"[[ {self.word(depth)} {tested} {self.word(depth)} ]]"
            case 7:
                end = self.pick("\\;", "{} +")
                return f"find . {self.pick('-exec', '-name')} {words} {end}"
            case 8:
                return f"{self.pick('sort', 'uniq', 'tee', 'sed -n', 'awk', 'read')} {words}"
            case 9:
                return f"{self.pick('declare -i x=', 'let x=', 'export x=')}{self.word(depth)}"
            case 10:
                return self.program(depth - 1)
            case _:
                return f"{self.pick('echo', 'cat', 'ls', 'printf %s', 'test -n')} {words}"

    def commands(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("touch m", "true", "echo a", "cat a")
        one, two = self.simple(depth), self.simple(depth - 1)
        joined = self.pick(" ; ", " && ", " || ", " | ", "\n", " # '\n", " # \\\n")
        match self.random.randrange(9):
            case 0:
                return f"{{ {one}; }} {self.pick('', '>/dev/null', '>m')}"
            case 1:
                return f"({one})"
            case 2:
                return f"if {one}; then {two}; else {self.commands(depth - 1)}; fi"
            case 3:
                return f"for {self.pick('x', 'PATH')} in {self.word(depth)} a; do {one}; done"
            case 4:
                pattern = self.pick("a", "*", "(b", "a|*", self.word(depth))
                return f"case {self.word(depth)} in {pattern}) {one};; esac"
            case 5:
                return f"f() {{ {one}; }}"
            case _:
                return f"{one}{joined}{two}"
