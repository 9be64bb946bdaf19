/** The models, and what the upstream has changed. */
import { Elysia } from "elysia";
import { z } from "zod";
import { driftList, driftListSchema } from "../../../books/changes/drift-list";
import { described } from "../../../web/described";
import { modelItems } from "../models";
import { roles } from "../roles";
import { modelSchema } from "../schemas";

export const upstream = new Elysia({ name: "admin-upstream" })
  .use(roles)
  .get("/models", async ({ app }) => ({ items: await modelItems(app) }), {
    member: true,
    response: z.object({ items: z.array(modelSchema) }),
    detail: described({
      about: "The current models: limits, endpoints, price, policy, accounts, unsupported fields.",
    }),
  })
  .get("/drift", ({ app }) => driftList(app.drift, app.losses), {
    owner: true,
    response: driftListSchema,
    detail: described({
      about:
        "Names that Copilot sends and dragoman does not know: events, members, values, headers, error codes and model fields. Also what it no longer sends, and which numbers are unknown for it.",
    }),
  });
