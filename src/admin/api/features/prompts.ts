/** What each prompt came to. */
import { Elysia } from "elysia";
import { described } from "../../../web/described";
import { listPrompts, promptPageSchema } from "../prompts";
import { queries } from "../query";
import { roles } from "../roles";

export const prompts = new Elysia({ name: "admin-prompts" })
  .use(roles)
  .get(
    "/prompts",
    ({ app, query: { limit, cursor_id, order, ...filters } }) => listPrompts(app, filters, limit, cursor_id, order),
    {
      member: true,
      query: queries.prompts,
      response: promptPageSchema,
      detail: described({
        about:
          "What each prompt came to, with its subagents and why: the newest first or, with `order=dearest`, the dearest; 50 or `limit` (at most 200), continued with `cursor_id`, filtered as requests are. Clients name their prompts by ids; those that do not are added up in `without_prompt`.",
      }),
    },
  );
