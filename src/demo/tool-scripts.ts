/** Finds the tool calls that a prompt requests. Tools are recognised by their schemas, not by the names that clients give them. */
import type { Call, ModelRequest, Tool } from "./parse-prompt";
import { sample } from "./sample";
import { type Json, list, record } from "./wire";

/** The tool calls for a prompt; empty if it requests none. */
export function scriptedCalls({ choice, background, parallel, ...ask }: ModelRequest): Call[] {
  if (choice === "none") return [];
  if (ask.results.length > 0) return callFound(ask);
  const prompt = ask.prompt.slice(-4000);
  const tools = ask.tools.filter((tool) => !isHostedSearch(tool));
  const offered = typeof choice === "object" ? tools.filter((tool) => tool.name === choice.name) : tools;
  const searches = searchScript(prompt, offered, background);
  const [first = []] = [toolSearchScript, fileScript, weatherScript, namedToolScript]
    .map((script) => script(prompt, offered, background))
    .filter((found) => found.length > 0);
  const calls = [...searches, ...first];
  if (calls.length > 0) return parallel ? calls : calls.slice(0, 1);
  return choice !== "auto" && offered[0] ? [sampled(offered[0])] : [];
}

/** The search that this upstream runs itself. */
export const isHostedSearch = ({ name, kind }: Tool): boolean => name === "web_search" && kind === "custom";

type ToolScript = (prompt: string, tools: Tool[], background: string[]) => Call[];

/** "write a file hello.txt with the text Hi there" */
const fileScript: ToolScript = (prompt, tools, background) => {
  const file = fileIn(prompt);
  if (!file) return [];
  for (const writer of writers) {
    const tool = tools.find((candidate) => writer.can(candidate));
    if (tool) return [{ tool, input: writer.input(tool, file, background) }];
  }
  return [];
};

/** "search the web for red pandas", "… twice in parallel" */
const searchScript: ToolScript = (prompt, tools) => {
  const tool = tools.find(
    ({ name, schema }) => /web_?search/i.test(name) && "query" in record(record(schema).properties),
  );
  const wanted = searchWish.exec(prompt)?.[1];
  if (!tool || wanted === undefined) return [];
  const call = (query: string): Call => ({ tool, input: { query } });
  const query = wanted.trim().slice(0, 1_200) || "DEMO";
  return /\btwice\b|\bparallel\b/i.test(prompt) ? [call(query), call(`${query} again`)] : [call(query)];
};

/** What is to be searched for. */
export const searchWish = /\b(?:search (?:the web|online)|web search)\b(?: for)?(?: the query)?:?\s*([^.\n]*)/i;

/** "find a tool that creates issues": the tool is called once it is found. */
const toolSearchScript: ToolScript = (prompt, tools) => {
  const wanted = /\bfind a tool (?:that|to|for)\s+([^.\n]+)/i.exec(prompt)?.[1];
  const tool = tools.find(
    ({ name, schema }) => /^tool_?search/i.test(name) && "query" in record(record(schema).properties),
  );
  return tool && wanted !== undefined ? [{ tool, input: { query: wanted.trim() } }] : [];
};

/** The first tool that a search has found. */
function callFound({ results, tools }: Pick<ModelRequest, "results" | "tools">): Call[] {
  const [, found] = /found and can be called now: ([\w-]+)/.exec(results.join("\n")) ?? [];
  const tool = tools.find(({ name, namespace }) => (namespace ? `${namespace}__${name}` : name) === found);
  return tool ? [sampled(tool)] : [];
}

/** "what is the weather?", "… in two cities" */
const weatherScript: ToolScript = (prompt, tools) => {
  const tool = tools.find(({ name }) => /weather/i.test(name));
  if (!tool || !/weather/i.test(prompt)) return [];
  const paris = sampled(tool);
  if (!/two cities|parallel|both/i.test(prompt)) return [paris];
  const tokyo = Object.entries(record(paris.input)).map(([key, value]) => [key, value === "Paris" ? "Tokyo" : value]);
  return [paris, { tool, input: Object.fromEntries(tokyo) }];
};

/** "call list_files", "call list_files twice in parallel" */
const namedToolScript: ToolScript = (prompt, tools) => {
  if (!/\b(call|use|run|invoke)\b/i.test(prompt)) return [];
  const named = tools.filter(({ name }) => new RegExp(`(?<![\\w-])${literally(name)}(?![\\w-])`, "i").test(prompt));
  const calls = named.map(sampled);
  return calls.length === 1 && /parallel|twice/i.test(prompt) ? [...calls, ...calls] : calls;
};

const literally = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const sampled = (tool: Tool): Call => ({
  tool,
  input: tool.kind === "custom" ? "DEMO input" : record(sample(tool.schema ?? {})),
});

interface File {
  path: string;
  content: string;
}

/** Ways to write a file, the best first. */
const writers: { can(tool: Tool): boolean; input(tool: Tool, file: File, background: string[]): unknown }[] = [
  {
    can: (tool) =>
      Boolean(
        pathKey(tool) && contentKey(tool) && !/edit|replace|notebook|search|find|grep|read|list/i.test(tool.name),
      ),
    input: (tool, file, background) => ({
      ...creating(tool),
      ...record(sample(tool.schema)),
      ...creating(tool),
      [pathKey(tool)!]: absolute(file.path, background),
      [contentKey(tool)!]: file.content,
    }),
  },
  {
    // An edit tool that creates the file if it is given no text to replace.
    can: (tool) => Boolean(pathKey(tool) && newTextKey(tool)) && !required(tool).some((key) => /old/i.test(key)),
    input: (tool, file, background) => ({
      ...record(sample(tool.schema)),
      [pathKey(tool)!]: absolute(file.path, background),
      [newTextKey(tool)!]: file.content,
    }),
  },
  {
    can: (tool) => tool.kind === "function" && Boolean(shellKey(tool)),
    input: (tool, file) => {
      const key = shellKey(tool)!;
      const script = shellScript(file);
      const wantsList = record(properties(tool)[key]).type === "array";
      // Either a list of commands, or one command as a list of arguments.
      const listed = /s$/i.test(key) ? [script] : ["bash", "-lc", script];
      return { ...record(sample(tool.schema)), [key]: wantsList ? listed : script };
    },
  },
  {
    can: (tool) => /patch/i.test(tool.name),
    input: (tool, file) => {
      const added = file.content.split("\n").map((line) => `+${line}`);
      const patch = ["*** Begin Patch", `*** Add File: ${file.path}`, ...added, "*** End Patch"].join("\n");
      const key = Object.keys(properties(tool)).find((name) => /^(input|patch|patchText|diff)$/i.test(name)) ?? "input";
      return tool.kind === "custom" ? patch : { ...record(sample(tool.schema)), [key]: patch };
    },
  },
  {
    // Code mode: the input is a program that calls the other tools. In dialects without free-form tools it is an argument.
    can: (tool) => /(?:^|_)exec$/.test(tool.name) && (tool.kind === "custom" || "input" in properties(tool)),
    input: (tool, file) => {
      const call = `tools.exec_command({ cmd: ${JSON.stringify(shellScript(file))} })`;
      const program = `const result = await ${call};\ntext(typeof result === "string" ? result : JSON.stringify(result));\n`;
      return tool.kind === "custom" ? program : { input: program };
    },
  },
];

const properties = (tool: Tool): Json => record(record(tool.schema).properties);
const keyLike = (tool: Tool, pattern: RegExp) => Object.keys(properties(tool)).find((name) => pattern.test(name));
const pathKey = (tool: Tool) => keyLike(tool, /^(file_?path|path|file_?name|file|target_file)$/i);
const contentKey = (tool: Tool) => keyLike(tool, /^(contents?|text|file_text|new_contents)$/i);
const newTextKey = (tool: Tool) => keyLike(tool, /^new_?(text|string)$/i);
const shellKey = (tool: Tool) => (contentKey(tool) ? undefined : keyLike(tool, /^(cmd|commands?|script)$/i));
const required = (tool: Tool) => list(record(tool.schema).required).map(String);

/** Some tools have a `command` member that selects what they do. */
function creating(tool: Tool): Json {
  return list(record(properties(tool).command).enum).includes("create") ? { command: "create" } : {};
}

function shellScript({ path, content }: File): string {
  const quote = (text: string) => (/^[\w./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
  const write = `printf '%s\\n' '${content.replaceAll("'", "'\\''")}' > ${quote(path)}`;
  return folder ? `mkdir -p ${quote(folder)} && ${write}` : write;
}

function absolute(path: string, background: string[]): string {
  if (/^(\/|~|[A-Za-z]:[\\/])/.test(path)) return path;
  const folder = workingFolder(background);
  if (!folder) return path;
  return `${folder.replace(/[\\/]$/, "")}${folder.includes("\\") ? "\\" : "/"}${path.replace(/^\.\//, "")}`;
}

const folderPatterns = [
  /<cwd>\s*([^<\n]+?)\s*<\/cwd>/,
  /working (?:in the )?directory(?: is)?:?\s+[`"'(]?((?:\/|[A-Za-z]:\\)[^\n`"'<)]*)/i,
  /"?\b(?:cwd|working_directory)"?\s*[:=]\s*"?((?:\/|[A-Za-z]:\\)[^\s"<]+)/i,
];

function workingFolder(background: string[]): string | undefined {
  for (const text of background)
    for (const pattern of folderPatterns) {
      const found = pattern.exec(text)?.[1];
      if (found) return found.replace(/[.\s]+$/, "");
    }
  return undefined;
}

/** A verb, then a file name. A file that is only mentioned must not be overwritten. */
const target =
  /\b(?:write|create|save|make|put|add|generate)\b.*?(?<!\b(?:of|from|about|like|read|at|than))(?:^|[\s"'“`(])((?:~|\.{1,2})?\/?(?:[\w@-][\w@.-]*\/)*[\w@-][\w@.-]*\.[A-Za-z][A-Za-z0-9]{0,7})(?=$|[\s"'”`),.:;!?])/is;
const quoted = /"([^"]+)"|“([^”]+)”|«([^»]+)»|`([^`]+)`|(?<!\w)'((?:[^']|'(?=\w))+)'(?!\w)/g;
/** "containing …", "with the text …", "that says …", up to the end of the prompt; and "the text … into". */
const lead =
  /\b(?:with|containing|contains?|saying|interjections?|reads?|contents?(?: is| are|:)?)\s+(?:exactly[:\s]\s*)?(?:the\s+|this\s+)?(?:exact\s+)?(?:(?:text|contents?|words?|line|string)\b\s*(?:of\b|is\b)?)?\s*:?\s*(\S[\s\S]*)$/i;
const middle = /\bthe (?:text|words?|line) (.+?) (?:in|into|to|as) /i;

/** Some clients put the whole prompt of their command line into quotes. */
const wholeInQuotes = /^"(.*)"$/s;

/** The file that a prompt wants to be written, and its text. */
function fileIn(words: string): File | undefined {
  const prompt = wholeInQuotes.exec(words.trim())?.[1] ?? words;
  const path = target.exec(prompt.replace(/\b(?:e\.g|i\.e)\.?/gi, ""))?.[1];
  if (!path) return undefined;
  const content = lead.exec(prompt)?.[1]?.trim() ?? middle.exec(prompt)?.[1];
  if (content && !/^["“«`']/.test(content)) return { path, content };
  const inQuotes = [...(content ?? prompt).matchAll(quoted)].map((match) => match.slice(1).find(Boolean) ?? "");
  return { path, content: inQuotes.find((text) => text !== path) ?? "Hello from DEMO" };
}
