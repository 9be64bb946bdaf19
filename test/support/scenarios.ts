/** The same conversations for every client and every upstream, each with what must come of it. */
import { expect } from "bun:test";
import type { SeenRequest } from "../../src/demo/demo";
import type { ClientDialect, Dialect } from "../../src/dialects/hub/conversation";
import type { Answer, Question, ToolSpec } from "./clients";

/** How an answer ends, in nobody's dialect. */
const ends = ["stop", "tool", "length", "refusal", "stop-sequence"] as const;
export type End = (typeof ends)[number];

interface Setting {
  client: ClientDialect;
  upstream: Dialect;
  /** The words of the thinking reach this client; else only its proof does. */
  showsThinking: boolean;
  /** Asks, and looks at everything that holds for every answer. */
  ask(question: Question, end: End): Promise<Answer>;
  /** Asks what must be refused; gives the status and the sentence. */
  refused(question: Question): Promise<{ status: number; message: string }>;
  /** What the upstream was sent last. */
  seen(): SeenRequest;
  /** What the newest row of the history says was left out. */
  dropped(): string[];
}

export const weather: ToolSpec = {
  name: "get_weather",
  description: "The weather in a city",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const writeFile: ToolSpec = {
  name: "write_file",
  description: "Writes a text file",
  schema: {
    type: "object",
    properties: { path: { type: "string" }, content: { type: "string" } },
    required: ["path", "content"],
  },
};

const listFiles: ToolSpec = { name: "list_files", schema: { type: "object", properties: {} } };

const manyTools = (count: number): ToolSpec[] =>
  Array.from({ length: count }, (_, index) => ({ ...weather, name: `mcp__server${index % 3}__tool_${index}` }));

/** One pixel. */
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const plays: Record<string, (setting: Setting) => Promise<void>> = {
  async text({ ask }) {
    const answer = await ask({ turns: [{ user: "Say hello." }] }, "stop");
    expect(answer.text).toContain("DEMO: Hello! 👋");
  },
  async system({ ask }) {
    // Where the file goes is written in the system text alone.
    const question = {
      system: "Be brief. The working directory is /srv/app",
      turns: [{ user: 'Write a file notes.txt with the text "Hi".' }],
      tools: [writeFile],
    };
    const answer = await ask(question, "tool");
    expect(answer.calls[0]).toMatchObject({ name: "write_file", input: { path: "/srv/app/notes.txt" } });
  },
  async "multi-turn"({ ask }) {
    const turns = [{ user: "My name is Ada." }, { assistant: "Noted, Ada." }, { user: "Say hello to me." }];
    const answer = await ask({ turns }, "stop");
    expect(answer.text).toContain("Say hello to me.");
  },
  async "tool call, its result, and the answer to it"({ ask }) {
    const asked: Question = { turns: [{ user: "What is the weather in Paris?" }], tools: [weather] };
    const answer = await ask(asked, "tool");
    expect(answer.calls).toMatchObject([{ name: "get_weather", input: { city: "Paris" } }]);
    const results = [{ id: answer.calls[0]!.id, text: "18 degrees, sunny" }];
    const final = await ask({ ...asked, turns: [...asked.turns, { said: answer }, { results }] }, "stop");
    expect(final.text).toContain("18 degrees, sunny");
  },
  async "parallel tools"({ ask }) {
    const prompt = "What is the weather in two cities, in parallel?";
    const asked: Question = { turns: [{ user: prompt }], tools: [weather] };
    const answer = await ask(asked, "tool");
    expect(answer.calls.map(({ input }) => input)).toEqual([{ city: "Paris" }, { city: "Tokyo" }]);
    const [paris, tokyo] = answer.calls;
    expect(paris!.id).not.toBe(tokyo!.id);
    const results = [
      { id: paris!.id, text: "18 in Paris" },
      { id: tokyo!.id, text: "25 in Tokyo" },
    ];
    const final = await ask({ ...asked, turns: [...asked.turns, { said: answer }, { results }] }, "stop");
    expect(final.text).toContain("18 in Paris | 25 in Tokyo");
  },
  async "tool results with images"({ ask, seen }) {
    const call = { id: "call_shot1", name: "screenshot", input: {} };
    const turns = [
      { user: "Look at the screen." },
      { assistant: "I look.", calls: [call] },
      { results: [{ id: call.id, text: "The screen, 1 by 1", image: pixel }] },
    ];
    await ask({ turns, tools: [{ ...listFiles, name: "screenshot" }] }, "stop");
    expect(seen().headers["copilot-vision-request"]).toBe("true");
    const body = new TextDecoder().decode(seen().bytes);
    expect(body.split(pixel)).toHaveLength(2);
    expect(body.split("The screen, 1 by 1")).toHaveLength(2);
  },
  async "thinking, then a tool"({ ask, dropped, showsThinking }) {
    const asked: Question = {
      turns: [{ user: "What is the weather in Paris?" }],
      tools: [weather],
      think: true,
      maxTokens: 8000,
    };
    const answer = await ask(asked, "tool");
    if (showsThinking) expect(answer.thinking).toContain("A demo can only follow its script.");
    expect(answer.calls).toMatchObject([{ name: "get_weather", input: { city: "Paris" } }]);
    const results = [{ id: answer.calls[0]!.id, text: "18 degrees" }];
    const final = await ask({ ...asked, turns: [...asked.turns, { said: answer }, { results }] }, "stop");
    expect(final.text).toContain("18 degrees");
    if (showsThinking) expect(final.thinking).toContain("The tool has answered.");
    expect(dropped()).not.toContain("thinking");
  },
  async "thinking that may not be shown, then a tool"({ ask, seen, upstream, dropped }) {
    const prompt = "[demo: redacted] What is the weather in Paris?";
    const asked: Question = { turns: [{ user: prompt }], tools: [weather], think: true, maxTokens: 8000 };
    const answer = await ask(asked, "tool");
    expect(answer.thinking).toBe("");
    const results = [{ id: answer.calls[0]!.id, text: "18 degrees" }];
    const final = await ask({ ...asked, turns: [...asked.turns, { said: answer }, { results }] }, "stop");
    expect(final.text).toContain("18 degrees");
    expect(dropped()).not.toContain("thinking");
    const { model } = seen().body as { model: string };
    const hasProofs = upstream !== "chat" || !model.startsWith("gpt-");
    const proof = /"(signature|data|encrypted_content|reasoning_opaque)":"[\w+/=]{40,}"/;
    expect(proof.test(JSON.stringify(seen().body))).toBe(hasProofs);
  },
  async "a tool's name that is too long for some"({ client, upstream, ask }) {
    // In its own dialect a name goes as it came: what is too long for the upstream is the client's to hear.
    if (client === upstream) return;
    const tool = { ...weather, name: `mcp__weather_${"long_".repeat(18)}` };
    const asked: Question = { turns: [{ user: "What is the weather in Paris?" }], tools: [tool] };
    const answer = await ask(asked, "tool");
    expect(answer.calls).toMatchObject([{ name: tool.name, input: { city: "Paris" } }]);
    const results = [{ id: answer.calls[0]!.id, text: "18 degrees" }];
    await ask({ ...asked, turns: [...asked.turns, { said: answer }, { results }] }, "stop");
  },
  async refusal({ ask }) {
    const answer = await ask({ turns: [{ user: "[demo: refuse] Say hello." }] }, "refusal");
    expect(answer.refusal || answer.text).toBe("DEMO: I can't help with that.");
  },
  async "max tokens"({ ask }) {
    const answer = await ask({ turns: [{ user: "Say hello." }], maxTokens: 20 }, "length");
    expect(answer.text).toStartWith("DEMO: Hello!");
    expect([...answer.text].length).toBeLessThanOrEqual(80);
  },
  async "stop sequence"({ client, upstream, ask, dropped }) {
    const kept = client !== "responses" && upstream !== "responses";
    const asked: Question = { turns: [{ user: "Say hello." }], stop: ["👋", "never said"] };
    const answer = await ask(asked, kept ? "stop-sequence" : "stop");
    if (kept) expect(answer.text).toBe("DEMO: Hello! ");
    else expect(answer.text).toContain("👋");
    // What the dialect cannot say is told, never lost in silence.
    if (client !== "responses" && upstream === "responses") expect(dropped()).toContain("stop");
  },
  async "structured output"({ ask }) {
    const schema = {
      type: "object",
      properties: { name: { type: "string", enum: ["Ada"] }, age: { type: "integer", minimum: 36 } },
      required: ["name", "age"],
      additionalProperties: false,
    };
    // A model that cannot be held to a schema is asked in words to keep to it.
    const answer = await ask({ turns: [{ user: "Who wrote the first program?" }], schema }, "stop");
    expect(JSON.parse(answer.text)).toEqual({ name: "Ada", age: 36 });
  },
  async "empty arguments"({ ask }) {
    const answer = await ask({ turns: [{ user: "Please call list_files." }], tools: [listFiles] }, "tool");
    expect(answer.calls).toMatchObject([{ name: "list_files", input: {} }]);
  },
  async unicode({ ask }) {
    const text = 'Ünï 👩‍👩‍👧 汉字 Ωμέγα \u2028 ‮rtl‬ "q" \\n';
    const answer = await ask({ turns: [{ user: text }] }, "stop");
    expect(answer.text).toContain("Ünï 👩‍👩‍👧 汉字 Ωμέγα");
    const content = "Grüße, 世界! 🎈 “\\u0041” \\";
    const written = await ask(
      { turns: [{ user: `Write a file a.txt with the text ${content}` }], tools: [writeFile] },
      "tool",
    );
    expect(written.calls[0]!.input).toMatchObject({ content });
  },
  async "128 tools are taken; of 200 some have to be searched for, or they are refused with their number and the limit"({
    ask,
    refused,
    upstream,
  }) {
    const turns = [{ user: "Say hello." }];
    await ask({ turns, tools: manyTools(128) }, "stop");
    if (upstream !== "messages") {
      await ask({ turns, tools: manyTools(200) }, "stop");
      return;
    }
    const { status, message } = await refused({ turns, tools: manyTools(200) });
    expect(status).toBe(400);
    expect(message).toContain("200");
    expect(message).toContain("128");
  },
  async "a prompt of 1 MB"({ ask, seen }) {
    const prompt = `${"汉".repeat(350_000)} The end.`;
    const answer = await ask({ turns: [{ user: prompt }] }, "stop");
    expect(answer.text).toContain("汉汉汉");
    expect(seen().bytes.length).toBeGreaterThan(1_000_000);
    expect(new TextDecoder().decode(seen().bytes)).toContain("汉 The end.");
  },
};

/** Each by its name. */
export const scenarios = Object.entries(plays);

/** Each dialect's own words for how an answer ended, in the order of the ends; one of them where there are several. */
const stopWords: Record<ClientDialect, string[]> = {
  chat: ["stop", "tool_calls", "length", "content_filter stop", "stop"],
  responses: ["completed", "completed", "max_output_tokens", "completed content_filter", "completed"],
  messages: ["end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence"],
  gemini: ["STOP", "STOP", "MAX_TOKENS", "SAFETY", "STOP"],
};

export function stopWord(client: ClientDialect, end: End, upstream: Dialect): string[] {
  const words = stopWords[client];
  // A chat upstream does not tell that it stopped at a sequence.
  const told = end === "stop-sequence" && upstream === "chat" ? "stop" : end;
  return words[ends.indexOf(told)]!.split(" ");
}
