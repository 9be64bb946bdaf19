/**
 * What real clients make of an answer that is no good: for each status, with and without the headers about retrying,
 * how many requests came, and when its sentence was shown. `bun test/clients/refused.ts [client …] [status …]`; the
 * table in README.md beside this file was measured so. Needs npm and its registry; not part of the tests.
 */

import type { models } from "../../src/deploy/documents/client-settings";
import { codecs } from "../../src/dialects/codecs";
import { ProxyError } from "../../src/lib/errors";
import { familiesOf, type Tool, tools } from "./clients";
import { type Installed, install } from "./install";
import { meet } from "./meet";

/** Milliseconds: a person who sees nothing for so long thinks that it hangs. */
const within = 20_000;
const sentence = "The otter is out. Run otter-in to mend it.";

const stop = { "x-should-retry": "false" };

interface Answer {
  status: number;
  headers: Record<string, string>;
  /** Some clients look at it. */
  code?: string;
}

const statuses = [400, 401, 402, 403, 404, 409, 422, 424, 429, 500, 502, 503, 504, 529];
const answers: Answer[] = [
  { status: 404, headers: {}, code: "model_not_found" },
  { status: 429, headers: {}, code: "quota_exceeded" },
  ...statuses.flatMap((status) => [
    { status, headers: {} },
    { status, headers: stop },
  ]),
  ...[5, 61, 3600].flatMap((seconds) =>
    [429, 503].flatMap((status) => {
      const headers = { "retry-after": String(seconds) };
      return [
        { status, headers },
        { status, headers: { ...headers, ...stop } },
      ];
    }),
  ),
];

/** The answer in the words of the path that was asked. */
function refuse(path: string, { status, headers, code = "otter_out" }: Answer): Response {
  const codec = path.includes("messages") ? codecs.messages : path.includes("v1beta") ? codecs.gemini : codecs.chat;
  const failed = status < 500 ? "invalid_request" : "no_account";
  const limited = code === "quota_exceeded" ? "quota" : "rate_limit";
  const kind = status === 429 ? limited : failed;
  const error = new ProxyError(kind, sentence, { status, code });
  return Response.json(codec.encodeError(error, "r1"), { status, headers });
}

async function refused(tool: Tool, model: keyof typeof models, answer: Answer, installed: Installed) {
  const startedAt = performance.now();
  /** Seconds from the start. */
  const requests: number[] = [];
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      if (request.headers.get("upgrade")) return new Response(null, { status: 426 });
      if (request.method !== "POST") return new Response(null, { status: 404 });
      requests.push((performance.now() - startedAt) / 1000);
      return refuse(new URL(request.url).pathname, answer);
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  return { requests, ...(await meet({ tool, model, url, words: new RegExp(sentence), timeoutMs: within }, installed)) };
}

const wanted = process.argv.slice(2);
const named = ([name, tool]: [string, Tool]) =>
  wanted.every((word) => /^\d/.test(word)) || wanted.includes(name) ? [tool] : [];
const asked = answers.filter(
  ({ status }) => wanted.every((word) => !/^\d/.test(word)) || wanted.includes(String(status)),
);
const chosen = Object.entries(tools).flatMap(named);
const installed = await install(Object.values(tools).map(({ npm }) => npm));
for (const tool of chosen)
  for (const name of familiesOf(tool))
    for (const answer of asked) {
      const { requests, shown, ended, said } = await refused(tool, name, answer, installed);
      const told = (seconds: number | undefined, otherwise: string) =>
        seconds === undefined ? otherwise : `${seconds.toFixed(1)} s`;
      console.log(
        [
          `${tool.id} ${await installed.version(tool.npm)}`,
          name,
          `${answer.status} ${answer.code ?? ""}`.trim(),
          Object.entries(answer.headers)
            .map(([key, value]) => `${key}: ${value}`)
            .join(", "),
          `${requests.length} requests (${requests.map((at) => at.toFixed(1)).join(" ")})`,
          `shown ${told(shown, "never")}`,
          `ended ${told(ended, "not within")}`,
          shown === undefined ? JSON.stringify(said.slice(-300)) : "",
        ].join(" | "),
      );
    }
