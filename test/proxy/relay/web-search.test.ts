/**
 * Scenario: web searches that run while the model answers, for clients of every dialect on models of every upstream
 * dialect, who searches, and what is not found; from `fixtures/scenes/searches.txt`.
 */
import { expect, test } from "bun:test";
import { eventsIn } from "../../support/event-stream";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";

testScenes("searches");

test.each(["claude-sonnet-4.6", "gpt-5.2", "gemini-3.1-pro-preview"])(
  "a search of %s is told in three events to a Responses client",
  async (model) => {
    await using proxy = await startProxy();
    const input = "Please search the web for red pandas.";
    const asked = { model, input, stream: true, tools: [{ type: "web_search" }] };
    const events = eventsIn(await (await proxy.post("/v1/responses", asked)).text());
    expect(events.flatMap(({ type }) => (type.includes("web_search_call") ? type.split(".").at(-1) : []))).toEqual([
      "in_progress",
      "searching",
      "completed",
    ]);
  },
);
