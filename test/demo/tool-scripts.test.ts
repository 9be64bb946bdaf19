/** Rows: the scripted model at the tools and the prompts of real clients, as they arrive. */
import { expect, test } from "bun:test";
import { type ModelRequest, ownWords, type Tool } from "../../src/demo/parse-prompt";
import { scriptedCalls } from "../../src/demo/tool-scripts";

const tool = (name: string, properties: object, kind: Tool["kind"] = "function"): Tool => ({
  name,
  kind,
  description: "",
  schema: kind === "custom" ? undefined : { type: "object", properties, required: Object.keys(properties) },
});
const text = { type: "string" };
const ask = (prompt: string, tools: Tool[]): ModelRequest => ({
  model: "demo",
  stream: true,
  prompt,
  results: [],
  background: ["<cwd>/home/me/project</cwd>"],
  tools,
  choice: "auto",
  thinks: undefined,
  effort: undefined,
  parallel: true,
  schema: undefined,
  maxTokens: undefined,
  stops: [],
  images: 0,
  blocks: [],
  cacheKey: undefined,
  weight: prompt.length,
  toolWeight: 0,
});

const prompt = "write a file hello.txt with the text Hi there";
const written = { path: "/home/me/project/hello.txt", content: "Hi there" };
const write = tool("write", { path: text, content: text });

test("a shell that is named runs a command that it has", () => {
  const shell = tool("Bash", { command: text, description: text });
  const [call] = scriptedCalls(ask("Run ls in this folder with Bash", [shell]));
  expect(call!.input).toEqual({ command: "ls", description: "demo" });
});

test("Qwen Code names its folder in a sentence", () => {
  const background = ["My operating system is: linux\nI'm currently working in the directory: /home/me/project\n"];
  const [call] = scriptedCalls({ ...ask(prompt, [write]), background });
  expect(call?.input).toEqual(written);
});

test("opencode puts its prompt in quotes", () => {
  expect(scriptedCalls(ask(`"${prompt}"`, [write]))).toEqual([{ tool: write, input: written }]);
  expect(scriptedCalls(ask(`"${prompt}"\n`, [write]))).toEqual([{ tool: write, input: written }]);
});

test("quotes inside a prompt stay what they are", () => {
  const [call] = scriptedCalls(ask('write "Hi there" into "hello.txt"', [write]));
  expect(call?.input).toEqual({ ...written, content: "Hi there" });
});

test("Codex's code mode: a program, as a free text or as an argument", () => {
  const program =
    "const result = await tools.exec_command({ cmd: \"printf '%s\\\\n' 'Hi there' > hello.txt\" });\ntext(typeof result === \"string\" ? result : JSON.stringify(result));\n";
  const free = tool("exec", {}, "custom");
  const wait = tool("wait", { cell_id: text });
  expect(scriptedCalls(ask(prompt, [wait, free]))).toEqual([{ tool: free, input: program }]);
  const nested = tool("functions__exec", { input: text });
  expect(scriptedCalls(ask(prompt, [wait, nested]))).toEqual([{ tool: nested, input: { input: program } }]);
});

test("a person's own words stand outside the clients' tags, closed ones, however many are not", () => {
  const reminder = "<system-reminder>be brief</system-reminder>";
  expect(ownWords(`${reminder} write it ${reminder}down`)).toBe("write it down");
  const folders = "<session_context>\nFolders contain more.\n</session_context>\n\nwrite it";
  expect(ownWords(folders)).toBe("write it");
  expect(ownWords("<system-reminder>open, <environment_context>x</environment_context>said")).toBe(
    "<system-reminder>open, said",
  );
  const unclosed = "<system-reminder>".repeat(100_000);
  expect(ownWords(unclosed)).toBe(unclosed);
});

test.each([
  ["What is the weather?", ["Paris"]],
  ["What is the weather in two cities?", ["Paris", "Tokyo"]],
  ["Ask for the weather in parallel.", ["Paris", "Tokyo"]],
  ["What is the weather in both?", ["Paris", "Tokyo"]],
  ["What is the time in both?", []],
])("the weather is asked for once, or for two cities at once: %s", (words, cities) => {
  const weather = tool("get_weather", { city: text });
  expect(scriptedCalls(ask(words, [weather])).map(({ input }) => input)).toEqual(cities.map((city) => ({ city })));
});

test.each([
  ["call list_files", ["list_files"]],
  ["Use list_files twice.", ["list_files", "list_files"]],
  ["run list_files in parallel", ["list_files", "list_files"]],
  ["invoke read and list_files twice", ["list_files", "read"]],
  ["list_files", []],
  ["call list_files_now", []],
])("a tool is called that is named with a word for it: %s", (words, names) => {
  const tools = [tool("list_files", {}), tool("read", {})];
  expect(scriptedCalls(ask(words, tools)).map(({ tool: { name } }) => name)).toEqual(names);
});
