/** Client keys. */
import { Elysia } from "elysia";
import { z } from "zod";
import { createdKeySchema, keyListSchema } from "../../../people/keys/key-list";
import { newKeySchema } from "../../../people/keys/stored-keys";
import { described } from "../../../web/described";
import { keySentTo } from "../../access/authorize";
import { createClientKey, listKeys, revokeClientKey } from "../keys";
import { roles, takes } from "../roles";
import { emptyBody } from "../schemas";

export const keys = new Elysia({ name: "admin-keys" })
  .use(roles)
  .get("/keys", ({ app }) => listKeys(app), {
    member: true,
    response: keyListSchema,
    detail: described({
      about: "The client keys: names, models, expiry and last use, never the keys.",
    }),
  })
  .post("/keys", ({ app, request, body }) => createClientKey(app, body, keySentTo(app, request)), {
    lasting: true,
    ...takes(newKeySchema),
    response: createdKeySchema,
    detail: described({
      about:
        "Creates a client key, for a member one of their own. The response has the key, which is not stored and cannot be shown again.",
      errors: ["conflict"],
    }),
  })
  .post("/keys/:name/revoke", ({ app, params }) => revokeClientKey(app, params.name), {
    member: true,
    response: z.object({ revoked: z.literal(true) }),
    detail: described({
      about: "Revokes a client key, such as `laptop` or a member's `anna/laptop`: its next request is refused.",
      reads: emptyBody,
      errors: ["not_found"],
    }),
  });
