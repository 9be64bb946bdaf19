/** Nothing is lost in silence: what a dialect has no word for is carried, named or refused. src/dialects/README.md shows the whole table. */
import { expect, test } from "bun:test";
import { pairs, replies, replyFate, requestFate, requests } from "../support/fidelity";

/** Their loss changes nothing for who asked. */
const idle = ["marks of what to cache"];

test.each(requests.map((idea) => [idea.name, idea] as const))("%s", (_, idea) => {
  for (const [client, upstream] of pairs) {
    const fate = requestFate(idea, client, upstream);
    if (!idle.includes(idea.name)) expect([client, upstream, fate]).not.toEqual([client, upstream, "left out"]);
  }
});

test("what both dialects have a word for is never dropped on a model that can do it", () => {
  const excused = ["`metadata`", "another dialect's thinking and its proof", "members nobody knows", ...idle];
  // Copilot's messages endpoint runs no tools of its own.
  excused.push("the upstream's own web search, beside other tools");
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
