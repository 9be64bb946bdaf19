/** The endpoints for clients as a group of the OpenAPI document. */
import { z } from "zod";
import type { ClientDialect } from "../dialects/hub/conversation";
import { lazy } from "../lib/lazy";
import type { EndpointGroup } from "../web/openapi";
import { clientEndpoints } from "./clients";

export function clientGroup(): EndpointGroup {
  const endpoints = clientEndpoints();
  const dialects = new Map(endpoints.map(({ path, dialect }) => [path, dialect]));
  return {
    endpoints,
    security: ["clientKey", "bearer"],
    errors: ["authentication", "permission", "rate_limit"],
    errorAt: (path) => errorSchemas()[dialects.get(path)!],
  };
}

const openaiError = lazy(() =>
  z
    .object({
      error: z.object({
        message: z.string(),
        type: z.string(),
        param: z.string().nullable(),
        code: z.string().nullable(),
      }),
    })
    .meta({ id: "OpenAIError" }),
);

const anthropicError = lazy(() =>
  z
    .object({
      type: z.literal("error"),
      error: z.object({ type: z.string(), message: z.string() }),
      request_id: z.string(),
    })
    .meta({ id: "AnthropicError" }),
);

const googleError = lazy(() =>
  z
    .object({
      error: z.object({
        code: z.int(),
        message: z.string(),
        status: z.string(),
        details: z.array(z.looseObject({ "@type": z.string() })),
      }),
    })
    .meta({ id: "GoogleError" }),
);

const errorSchemas = lazy(
  (): Record<ClientDialect, z.ZodType> => ({
    chat: openaiError(),
    responses: openaiError(),
    messages: anthropicError(),
    gemini: googleError(),
  }),
);
