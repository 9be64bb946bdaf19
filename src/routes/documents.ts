/** The endpoints for clients as a group of the OpenAPI document. */
import type { EndpointGroup } from "../web/openapi";
import { clientEndpoints } from "./clients";
import { errorSchemas } from "./schemas";

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
