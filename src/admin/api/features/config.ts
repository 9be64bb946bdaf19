/** The config, and a test of its notices. */
import { Elysia } from "elysia";
import { z } from "zod";
import { described } from "../../../web/described";
import { changeConfig, showConfig } from "../config";
import { roles } from "../roles";
import { configAnswerSchema, configPatchSchema, emptyBody } from "../schemas";

export const config = new Elysia({ name: "admin-config" })
  .use(roles)
  .get("/config", ({ app }) => showConfig(app), {
    owner: true,
    response: configAnswerSchema,
    detail: described({
      about: "The config: every key with masked secrets, and whether its value is stored or the default.",
    }),
  })
  .post("/config", ({ app, request }) => changeConfig(app, request), {
    owner: true,
    response: configAnswerSchema,
    detail: described({
      about: "Changes the config file and takes effect at once: a JSON object of the keys to change.",
      reads: configPatchSchema,
      errors: ["conflict"],
    }),
  })
  .post("/notices/test", async ({ app }) => ({ faults: await app.notices.test() }), {
    owner: true,
    response: z.object({ faults: z.array(z.string()).describe("A sentence for each channel that failed.") }),
    detail: described({
      about: "Sends a test notice to every channel of the config.",
      reads: emptyBody,
    }),
  });
