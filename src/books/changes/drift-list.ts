/** What is new in the upstream, as the admin API, the page Health and a report show it. */
import { z } from "zod";
import { type Drift, driftKinds } from "./drift";
import type { Losses } from "./losses";

const driftItemSchema = z.object({
  kind: z.enum(driftKinds),
  name: z.string().describe("A name of the wire format, never a value. Inside an event, after the event's type."),
  where: z.string().describe("The dialect of the reply, `models` or `errors`."),
  count: z.number().describe("One reply a minute of each model and dialect is looked at."),
  first_seen_ms: z.number(),
  last_seen_ms: z.number(),
});
export type DriftItem = z.output<typeof driftItemSchema>;

export const driftListSchema = z.object({
  items: z.array(driftItemSchema).describe("Since the start, the newest name first."),
  missing: z
    .array(
      z.object({
        where: z.string().describe("The dialect of the reply, or the part of the API."),
        member: z.string().describe("Its path. Names apart by `|` are of different generations."),
        affects: z.string().describe("What is unknown without it."),
        count: z.number().describe("Answers that lacked it."),
        first_seen_ms: z.number(),
        last_seen_ms: z.number(),
      }),
    )
    .describe("What Copilot no longer sends though something is read from it, the newest first."),
  overflow: z.number().describe("How often a name was left out because there were too many."),
});

export const driftList = (
  { sightings, overflow }: Pick<Drift, "sightings" | "overflow">,
  { current }: Pick<Losses, "current">,
) => ({
  items: sightings.map(
    ({ firstAt, lastAt, ...sighting }): DriftItem => ({ ...sighting, first_seen_ms: firstAt, last_seen_ms: lastAt }),
  ),
  missing: current.map(({ firstAt, lastAt, ...loss }) => ({ ...loss, first_seen_ms: firstAt, last_seen_ms: lastAt })),
  overflow,
});
