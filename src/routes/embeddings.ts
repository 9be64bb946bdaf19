/** OpenAI's Embeddings. */
import { Elysia } from "elysia";
import { z } from "zod";
import { embed } from "../proxy/relay/embed";
import { access } from "../web/access";
import { described } from "../web/described";
import { upstreamErrors } from "./descriptions";

export const embeddings = new Elysia({ name: "embeddings" })
  .use(access)
  .post("/embeddings", ({ scope, request, caller }) => embed(scope, request, caller), {
    access: "models",
    detail: described({
      about: "Embeddings of a text or an array of texts, as floats or base64.",
      reads: () =>
        z.looseObject({
          model: z.string().min(1),
          input: z.union([z.string(), z.array(z.string())]),
          encoding_format: z.enum(["float", "base64"]).nullish(),
        }),
      answers: () => z.looseObject({}),
      errors: upstreamErrors,
      reference: "https://platform.openai.com/docs/api-reference/embeddings/create",
    }),
  });
