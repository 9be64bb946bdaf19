/** `dragoman completion <shell>`: a script that completes commands, options and their values, generated from the definitions of the commands. */
import { type Command, common, type Group, type Option, spellingsOf } from "./command";
import { UsageError } from "./usage-error";

/** @throws UsageError for another shell. */
export async function completion(shell: string, groups: readonly Group[]): Promise<string> {
  if (!Object.hasOwn(scripts, shell))
    throw new UsageError(`There is no completion script for that shell. Known shells: ${completedShells.join(", ")}.`);
  return scripts[shell as keyof typeof scripts](await wordsOf(groups.flatMap(({ commands }) => commands)));
}

interface Word {
  text: string;
  about: string;
}

/**
 * The words that may follow: for a command (`auth add`; empty for none yet) its subcommands, options and arguments; for a
 * command and an option with a value (`start --host`) the known values, if any.
 */
type Words = Map<string, Word[]>;

async function wordsOf(commands: readonly Command[]): Promise<Words> {
  const words: Words = new Map([["", []]]);
  const add = (under: string, more: Word[]) => words.set(under, [...(words.get(under) ?? []), ...more]);
  const addOptions = async (name: string, options: Readonly<Record<string, Option>>) => {
    for (const [key, option] of Object.entries(options)) {
      const { about, value } = option;
      const spellings = spellingsOf(key, option);
      add(
        name,
        spellings.map((text) => ({ text, about })),
      );
      const known = (await option.values?.()) ?? [];
      if (value !== undefined) for (const each of spellings) add(`${name} ${each}`, known.map(asWord));
    }
  };
  for (const { name, about, values, options } of commands) {
    const [own = "", ...above] = name.split(" ").reverse();
    const group = above.reverse().join(" ");
    // `key` has subcommands and is no command itself.
    if (!words.has(group) && !commands.some((command) => command.name === group)) add("", [asWord(group)]);
    add(group, [{ text: own, about }]);
    add(name, ((await values?.()) ?? []).map(asWord));
    await addOptions(name, { ...options, ...common });
  }
  await addOptions("", common);
  return words;
}

const asWord = (text: string): Word => ({ text, about: "" });

/** The names of commands: all keys that do not end in an option. */
const namesIn = (words: Words): string[] => [...words.keys()].filter((key) => key !== "" && !/(?:^| )-/.test(key));

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Each script finds the command in the words before the cursor, then looks up the words that may follow. */
const scripts = {
  bash: (words: Words) => `# dragoman: completion for bash
_dragoman() {
  local command="" before="\${COMP_WORDS[COMP_CWORD-1]}" word="\${COMP_WORDS[COMP_CWORD]}" found="" at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "\${command:+$command }\${COMP_WORDS[at]}" in
      ${namesIn(words).map(quoted).join("|")}) command="\${command:+$command }\${COMP_WORDS[at]}" ;;
    esac
  done
  # --option=value comes as three words.
  if [[ $before == = ]]; then before="\${COMP_WORDS[COMP_CWORD-2]}"; elif [[ $word == = ]]; then word=""; fi
  case "\${command:+$command }$before" in
${optionRows(words, (key, texts) => `    ${quoted(key)}) found=${quoted(texts.join(" "))} ;;`)}
    *)
      case "$command" in
${commandRows(words, (key, texts) => `        ${quoted(key)}) found=${quoted(texts.join(" "))} ;;`)}
      esac
      ;;
  esac
  COMPREPLY=($(compgen -W "$found" -- "$word"))
}
complete -F _dragoman dragoman
`,
  zsh: (words: Words) => `#compdef dragoman
# dragoman: completion for zsh
_dragoman() {
  local command="" before="\${words[CURRENT-1]}" word
  local -a found
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${command:+$command }$word" in
      ${namesIn(words).map(quoted).join("|")}) command="\${command:+$command }$word" ;;
    esac
  done
  case "\${command:+$command }$before" in
${optionRows(words, (key, texts) => `    ${quoted(key)}) found=(${texts.map(quoted).join(" ")}) ;;`)}
    *)
      case "$command" in
${commandRows(words, (key, _, each) => `        ${quoted(key)}) found=(\n${each.map(({ text, about }) => `          ${quoted(about ? `${text}:${about}` : text)}`).join("\n")}\n        ) ;;`)}
      esac
      ;;
  esac
  _describe -t words dragoman found
}
if [[ "\${funcstack[1]}" == _dragoman ]]; then _dragoman "$@"; else compdef _dragoman dragoman; fi
`,
  fish: (words: Words) => `# dragoman: completion for fish
function __dragoman_command
    set -l command ''
    set -l before (commandline -opc)
    set -e before[1]
    for word in $before
        switch (string trim "$command $word")
            case ${namesIn(words).map(fishQuoted).join(" ")}
                set command (string trim "$command $word")
        end
    end
    echo $command
end
complete -c dragoman -f
${[...words].flatMap(([key, each]) => (isOfOption(key) ? [] : fishLines(key, each, words))).join("\n")}
`,
  powershell: (words: Words) => `# dragoman: completion for PowerShell
Register-ArgumentCompleter -Native -CommandName dragoman -ScriptBlock {
  param($word, $ast, $cursor)
  $table = @{
${[...words].map(([key, each]) => `    ${powerQuoted(key)} = @(${each.map(({ text, about }) => powerQuoted(`${text}\t${about || text}`)).join(", ")})`).join("\n")}
  }
  $names = @(${namesIn(words).map(powerQuoted).join(", ")})
  $command = ''
  $before = ''
  foreach ($element in @($ast.CommandElements | Select-Object -Skip 1)) {
    if ($element.Extent.EndOffset -ge $cursor) { break }
    $before = $element.ToString()
    if ($names -contains "$command $before".Trim()) { $command = "$command $before".Trim() }
  }
  $key = "$command $before".Trim()
  $found = if ($before.StartsWith('-') -and $table.ContainsKey($key)) { $table[$key] } else { $table[$command] }
  foreach ($each in $found) {
    $text, $about = $each -split "\`t", 2
    if ($text -like "$word*") { [System.Management.Automation.CompletionResult]::new($text, $text, 'ParameterValue', $about) }
  }
}
`,
};

/** The shells with a completion script. */
export const completedShells = Object.keys(scripts);

const isOfOption = (key: string) => /(?:^| )-\S+$/.test(key);

type Row = (key: string, texts: string[], words: Word[]) => string;

const rows = (words: Words, ofOption: boolean, row: Row) =>
  [...words]
    .filter(([key]) => isOfOption(key) === ofOption)
    .map(([key, each]) =>
      row(
        key,
        each.map(({ text }) => text),
        each,
      ),
    )
    .join("\n");
const optionRows = (words: Words, row: Row) => rows(words, true, row);
const commandRows = (words: Words, row: Row) => rows(words, false, row);

const fishQuoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function fishLines(key: string, each: Word[], words: Words): string[] {
  const when = `-n ${fishQuoted(`test (__dragoman_command) = '${key}'`)}`;
  return each.map(({ text, about }) => {
    const described = about ? ` -d ${fishQuoted(about)}` : "";
    const [, dashes, name] = /^(--?)(.+)$/.exec(text) ?? [];
    if (!dashes) return `complete -c dragoman ${when} -a ${fishQuoted(text)}${described}`;
    const known = words.get(key === "" ? text : `${key} ${text}`);
    const value = known
      ? ` -x${known.length > 0 ? ` -a ${fishQuoted(known.map((word) => word.text).join(" "))}` : ""}`
      : "";
    return `complete -c dragoman ${when} ${dashes === "--" ? "-l" : "-s"} ${name}${value}${described}`;
  });
}

const powerQuoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
