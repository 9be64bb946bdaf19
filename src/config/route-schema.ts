/** The routes: other models for requests of a kind that clients declare. */
import { z } from "zod";
import { lazy } from "../lib/lazy";
import { modelId } from "./provider-schema";

/** What a client can declare a request to be for: words of `requestKinds`, without those that are a person's own choice. */
const routeName = /^(?:subagent(?::[A-Za-z][\w-]{0,47})?|compaction|check|title|auxiliary)$/;

export const routesSchema = lazy(() =>
  z
    .record(
      z.string().regex(routeName, "expected subagent, subagent:<agent type>, compaction, check, title or auxiliary"),
      modelId,
    )
    .refine((all) => Object.keys(all).length <= 100, "expected at most 100 routes")
    .meta({ title: "Routes", section: "models" })
    .describe(
      "Another model for requests that a client declares to be of a kind: `subagent`, `subagent:Explore` for one agent type, `compaction`, `check`, `title` or `auxiliary`, and the model's id. The client's own model serves where that one cannot be used.",
    ),
);
