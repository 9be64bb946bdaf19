/**
 * What a person expects of every client: that the model's thoughts come back to it with the result of a tool, that it sees an
 * image, that a session goes on after its end, and that Ctrl-C ends the request upstream.
 * `bun test/clients/ability-cases.ts [client …]` runs these alone.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SeenRequest } from "../../src/demo/demo";
import { models } from "../../src/deploy/documents/client-settings";
import { Collected, type Family } from "../../src/deploy/documents/works-with";
import { type RunningProxy, startProxy } from "../support/proxy";
import { runAlone } from "./alone";
import { type Tool, task, tools } from "./clients";
import type { Installed } from "./install";
import { type Meeting, meet } from "./meet";
import type { Strength } from "./strength-cases";

/** Milliseconds. */
const within = 90_000;

/** A red square. */
const image = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg==",
  "base64",
);

/** What has reached the upstream by then: requests to a model, the oldest first. */
type Judge = (asked: readonly SeenRequest[], proxy: RunningProxy) => string | undefined;

interface Ability {
  feature: "thinking" | "images" | "resume" | "cancel";
  /** What differs from giving it a task; undefined for a client that has no way to do this without its screen. */
  given(tool: Tool, proxy: RunningProxy): Partial<Meeting> | undefined;
  fault: Judge;
}

const bodyOf = ({ body }: SeenRequest) => JSON.stringify(body);
const thoughts = /"type":"(?:redacted_)?thinking"|"type":"reasoning"|"reasoning_opaque"/;
const picture = /"type":"(?:image|input_image|image_url)"/;

const abilities: readonly Ability[] = [
  {
    feature: "thinking",
    given: ({ thinking }) => ({
      task: `think, then ${task}`,
      ...(thinking && { commands: (_work, model) => [thinking(`think, then ${task}`, model)] }),
    }),
    fault: (asked) => {
      const after = asked.findLast((one) =>
        /"type":"(?:tool_result|function_call_output)"|"role":"tool"/.test(bodyOf(one)),
      );
      if (!after) return "no tool's result came back";
      return thoughts.test(bodyOf(after)) ? undefined : "the thoughts did not come back";
    },
  },
  {
    feature: "images",
    given: ({ withImage }) =>
      withImage && {
        commands(work, model) {
          const file = join(work, "square.png");
          writeFileSync(file, image);
          return [withImage("what is in the image", file, model)];
        },
      },
    fault: (asked) => (asked.some((one) => picture.test(bodyOf(one))) ? undefined : "no image arrived"),
  },
  {
    feature: "resume",
    given: (tool) =>
      tool.resumed && {
        commands: (_work, model) => [tool.command("remember the otter", model), tool.resumed!("and the heron", model)],
      },
    fault: (asked) =>
      asked.some((one) => /the otter.*the heron/.test(bodyOf(one))) ? undefined : "the second run began anew",
  },
  {
    feature: "cancel",
    given: (_tool, { demo }) => ({
      task: "[demo: silence 60] say hello",
      interrupts: () =>
        demo.journal.some((one) => isAsked(one) && one.status === 200 && bodyOf(one).includes("silence 60")),
    }),
    fault: (asked, proxy) => {
      const begun = asked.filter((one) => bodyOf(one).includes("silence 60"));
      if (begun.length === 0) return "it was not asked";
      if (begun.some(({ aborted }) => aborted === undefined)) return "the request went on upstream";
      return proxy.rows().some(({ http_status }) => http_status === 499) ? undefined : "the history does not say so";
    },
  },
];

const isAsked = ({ method, path }: SeenRequest) =>
  method === "POST" && /\/(?:messages|responses|chat\/completions)$/.test(path);

export async function* abilitiesOf(installed: Installed, isWanted: (tool: Tool) => boolean): AsyncGenerator<Strength> {
  for (const tool of Object.values(tools).filter(isWanted))
    for (const ability of abilities)
      for (const family of ["claude", "gpt", "gemini"] as const) {
        const found = await tryAbility(ability, tool, family, installed);
        if (found) yield found;
      }
}

async function tryAbility(
  { feature, given, fault }: Ability,
  tool: Tool,
  family: Family,
  installed: Installed,
): Promise<Strength | undefined> {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  const wish = given(tool, proxy);
  if (!wish) return undefined;
  const meeting = { tool, model: family, url: proxy.url, words: /$^/, timeoutMs: within, ...wish };
  const { ended, said } = await meet(meeting, installed);
  const wrong = () => fault(proxy.demo.journal.filter(isAsked), proxy);
  // A client that has ended is noticed by what it was connected to a little later.
  for (let tries = 0; wrong() !== undefined && tries < 30; tries++) await Bun.sleep(100);
  const faults = [wrong(), ended === undefined ? "it did not end" : undefined].filter((each) => each !== undefined);
  return { tool, model: models[family].id, family, name: feature, feature, faults, said };
}

if (import.meta.main) {
  const collected = new Collected(new Date().toISOString().slice(0, 10));
  await runAlone(Object.values(tools), abilitiesOf, ({ tool, model, family, name, feature, faults }, version) => {
    collected.add(tool.id, version, feature, faults.length === 0, family);
    return `${model}, ${name}`;
  });
  console.log(...collected.write());
}
