/** The description of the program and of its endpoints. */
import { Elysia } from "elysia";
import { z } from "zod";
import { described } from "../../../web/described";
import { describeInstance } from "../meta";
import { roles } from "../roles";
import { metaSchema } from "../schemas";

export const documents = new Elysia({ name: "admin-documents" })
  .use(roles)
  .get("/meta", ({ app }) => describeInstance(app), {
    owner: true,
    response: metaSchema,
    detail: described({
      about: "The program and its history: file, limits, number of rows, oldest row, and whether it can be written.",
    }),
  })
  .get("/openapi.json", async ({ describeApi }) => Response.json(await describeApi()), {
    member: true,
    detail: described({
      about: "All endpoints as an OpenAPI 3.1 document.",
      answers: z.looseObject({ openapi: z.string(), paths: z.looseObject({}) }),
    }),
  });
