/**
 * Rows: what a client is told of a failure: to come again where that helps, and otherwise at once what is to be done;
 * `fixtures/scenes/requests.txt` has what each dialect hears.
 */
import { expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { againOf, errorKinds, ProxyError } from "../../../src/lib/errors";
import { errorForClient } from "../../../src/proxy/relay/client-error";
import { startProxy } from "../../support/proxy";

const claude = "claude-sonnet-4.6";

test("official SDKs ask once, and show the sentence", async () => {
  await using proxy = await startProxy({ accounts: [] });
  let requests = 0;
  const counting = (input: string | URL | Request, init?: RequestInit) => {
    requests++;
    return fetch(input, init);
  };
  const options = { apiKey: "unused", maxRetries: 5, fetch: counting as typeof fetch };
  const openai = new OpenAI({ baseURL: `${proxy.url}/v1`, ...options });
  const anthropic = new Anthropic({ baseURL: proxy.url, ...options });
  const hello = [{ role: "user" as const, content: "Hello" }];
  const calls = [
    () => openai.chat.completions.create({ model: "gpt-5-mini", messages: hello }),
    () => openai.responses.create({ model: "gpt-5-mini", input: "Hello" }),
    () => anthropic.messages.create({ model: claude, max_tokens: 9, messages: hello }),
    () => openai.models.list(),
  ];
  for (const call of calls) {
    requests = 0;
    expect(await Promise.resolve(call()).catch((thrown: Error) => thrown.message)).toContain("dragoman auth");
    expect(requests).toBe(1);
  }
});

/** What clients repeat by themselves, or are silent about. */
const repeats = (status: number) => status === 408 || status === 409 || status === 429 || status >= 500;

test("no kind of failure that waiting cannot mend has a status that clients repeat, once it is told", () => {
  for (const kind of Object.keys(errorKinds) as (keyof typeof errorKinds)[])
    for (const dialect of ["messages", "responses", "chat"] as const) {
      const error = new ProxyError(kind, "It failed.");
      const told = errorForClient(error, dialect, "opencode/1.18.33");
      const again = againOf(error);
      expect([kind, told.details.headers?.["x-should-retry"]]).toEqual([kind, again === "soon" ? undefined : "false"]);
      if (again !== "soon" && kind !== "conflict") expect([kind, repeats(told.status)]).toEqual([kind, false]);
      if (again === "soon") expect(told).toBe(error);
      const twice = errorForClient(told, dialect, "opencode/1.18.33");
      expect([twice.kind, twice.status, twice.details]).toEqual([told.kind, told.status, told.details]);
    }
});
