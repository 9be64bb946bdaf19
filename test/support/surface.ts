/** The parts of the program that CHANGELOG.md promises to stay, each as a line, so that two versions can be compared. */

interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema | boolean;
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
}

type Content = { content?: Record<string, { schema?: Schema }> };

interface Operation {
  parameters?: { name: string; in: string; required?: boolean }[];
  requestBody?: Content;
  responses?: Record<string, Content>;
}

export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** Each path with its parameters, and each member of what is sent to it and what it answers. */
function linesOfApi({ paths, components: { schemas } }: OpenApiDocument): Set<string> {
  const lines = new Set<string>();
  const add = (prefix: string, schema: Schema | boolean | undefined, within: readonly string[]): void => {
    if (typeof schema !== "object") return;
    const name = schema.$ref?.split("/").at(-1);
    if (name !== undefined) {
      if (!within.includes(name)) add(prefix, schemas[name], [...within, name]);
      return;
    }
    const values = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
    for (const value of values) lines.add(`${prefix} may be ${JSON.stringify(value)}`);
    if (schema.default !== undefined) lines.add(`${prefix} is ${JSON.stringify(schema.default)} by default`);
    for (const [member, inner] of Object.entries(schema.properties ?? {})) {
      lines.add(`${prefix}.${member}`);
      add(`${prefix}.${member}`, inner, within);
    }
    for (const member of schema.required ?? []) if (prefix.endsWith("sent")) lines.add(`${prefix} needs ${member}`);
    add(`${prefix}[]`, schema.items, within);
    add(`${prefix}.<name>`, schema.additionalProperties, within);
    for (const each of [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => list ?? []))
      add(prefix, each, within);
  };
  for (const [path, methods] of Object.entries(paths))
    for (const [method, { parameters = [], requestBody, responses = {} }] of Object.entries(methods)) {
      const endpoint = `${method.toUpperCase()} ${path}`;
      lines.add(endpoint);
      for (const { name, in: place, required } of parameters) {
        lines.add(`${endpoint} ${place} ${name}`);
        if (required) lines.add(`${endpoint} needs ${name}`);
      }
      const parts = { sent: requestBody, ...responses };
      for (const [part, body] of Object.entries(parts))
        for (const [type, { schema }] of Object.entries(body?.content ?? {})) {
          lines.add(`${endpoint} ${type} ${part}`);
          add(`${endpoint} ${type} ${part}`, schema, []);
        }
    }
  return lines;
}

/** Each command with its options and their values, as bash completes them. */
const linesOfCommands = (completion: string): string[] =>
  [...completion.matchAll(/'([^']+)'\) found='([^']+)'/g)].flatMap(([, command = "", words = ""]) =>
    words.split(" ").map((word) => `dragoman ${command} ${word}`),
  );

export interface Surface {
  api: OpenApiDocument;
  /** What `dragoman completion bash` prints. */
  completion: string;
}

/** What the newer version lacks of the older one, and what it demands where the older one did not, as sorted lines. */
export function brokenBetween(older: Surface, newer: Surface): string[] {
  const [before, now] = [older, newer].map(
    ({ api, completion }) => new Set([...linesOfApi(api), ...linesOfCommands(completion)]),
  ) as [Set<string>, Set<string>];
  const isDemand = (line: string) => line.includes(" needs ");
  const gone = [...before].filter((line) => !isDemand(line) && !now.has(line));
  const demanded = [...now].filter(
    (line) => isDemand(line) && !before.has(line) && before.has(line.split(" needs ")[0]!),
  );
  return [...gone, ...demanded].sort();
}
