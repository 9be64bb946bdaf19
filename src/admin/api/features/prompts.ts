/** What each prompt came to. */
import { Elysia } from "elysia";
import { described } from "../../../web/described";
import { listPrompts, promptPageSchema } from "../prompts";
import { queries } from "../query";
import { roles } from "../roles";

export const prompts = new Elysia({ name: "admin-prompts" })
  .use(roles)
  .get("/prompts", ({ app, query: { limit, cursor_id, ...filters } }) => listPrompts(app, filters, limit, cursor_id), {
    member: true,
    query: queries.requests,
    response: promptPageSchema,
    detail: described({
      about:
        "What each prompt came to, with its subagents and why: the newest first, 50 or `limit` (at most 200), continued with `cursor_id`, filtered as requests are. Clients name their prompts by ids; those that do not are added up in `without_prompt`.",
    }),
  });
