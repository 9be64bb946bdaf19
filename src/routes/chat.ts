/** OpenAI's Chat Completions. */
import { Elysia } from "elysia";
import { relay } from "../proxy/relay/relay";
import { access } from "../web/access";
import { described } from "../web/described";
import { relayed } from "./descriptions";

export const chat = new Elysia({ name: "chat" })
  .use(access)
  .post("/chat/completions", ({ scope, request, caller }) => relay(scope, request, caller, "chat"), {
    access: "models",
    detail: described({
      ...relayed,
      about: "Chat completions, full or streamed.",
      reference: "https://platform.openai.com/docs/api-reference/chat/create",
    }),
  });
