/**
 * Rows: what a dialect has no field for is carried, named as dropped, or refused. src/dialects/README.md shows the
 * whole table.
 */
import { expect, test } from "bun:test";
import { pairs, replyFate, requestFate } from "../../src/deploy/documents/fidelity";
import { replies } from "../../src/deploy/documents/reply-ideas";
import { requests } from "../../src/deploy/documents/request-ideas";

/** Their loss changes nothing for who asked. */
const idle = ["cache markers"];

test.each(requests.map((idea) => [idea.name, idea] as const))("%s", (_, idea) => {
  for (const [client, upstream] of pairs) {
    const fate = requestFate(idea, client, upstream);
    if (!idle.includes(idea.name)) expect([client, upstream, fate]).not.toEqual([client, upstream, "left out"]);
  }
});

test("what both dialects have a word for is never dropped on a model that can do it", () => {
  const excused = ["`metadata`", "signed reasoning of another dialect", "unknown fields", ...idle];
  // Copilot's messages endpoint runs no tools of its own.
  excused.push("the upstream's web search, with other tools");
  // Models that think give no probabilities, and no others are served by the Responses API alone.
  excused.push("`logprobs`");
  for (const idea of requests.filter(({ name }) => !excused.includes(name)))
    for (const [client, upstream] of pairs)
      if (idea.said[client] && idea.said[upstream])
        expect([idea.name, client, upstream, requestFate(idea, client, upstream)]).not.toContain("dropped");
});

test("a reply loses nothing that the client's dialect has a word for", () => {
  for (const idea of replies)
    for (const [client, upstream] of pairs)
      if (idea.said[client] && idea.said[upstream])
        expect([idea.name, client, upstream, replyFate(idea, client, upstream)]).not.toContain("–");
});
