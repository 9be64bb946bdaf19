/** The `OTEL_*` variables that this room reads itself. The exporter reads those that begin with `OTEL_EXPORTER_OTLP_`. */

type Variables = Readonly<Record<string, string | undefined>>;

interface OtelSettings {
  /** Whether traces are exported. */
  traces: boolean;
  /** Why they are not, although the owner wanted it, as a sentence. */
  fault?: string;
}

const addressNames = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const protocolNames = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/** https://opentelemetry.io/docs/specs/otlp/#otlphttp */
const protobuf = "http/protobuf";

/**
 * What the owner asked for. Nothing, unless a variable names an exporter or an address.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function readOtelSettings(env: Variables): OtelSettings {
  const exporter = firstIn(env, ["OTEL_TRACES_EXPORTER"]);
  const address = firstIn(env, addressNames);
  const isOff = firstIn(env, ["OTEL_SDK_DISABLED"])?.toLowerCase() === "true" || exporter === "none";
  if (isOff || (exporter === undefined && address === undefined)) return { traces: false };
  const fault = faultOf(exporter, address, firstIn(env, protocolNames));
  return fault === undefined ? { traces: true } : { traces: false, fault: `No traces are exported: ${fault}` };
}

/** Where the traces go, for people; without a path or credentials. */
export const collectorOf = (env: Variables): string =>
  URL.parse(firstIn(env, addressNames) ?? "")?.origin ?? "http://localhost:4318";

function faultOf(exporter = "otlp", address = "http://localhost:4318", protocol = protobuf): string | undefined {
  if (exporter !== "otlp") return `OTEL_TRACES_EXPORTER is ${exporter.slice(0, 40)}; only otlp and none are known.`;
  if (!/^https?:$/.test(URL.parse(address)?.protocol ?? ""))
    return "OTEL_EXPORTER_OTLP_ENDPOINT must begin with http:// or https://.";
  if (protocol !== protobuf)
    return `OTEL_EXPORTER_OTLP_PROTOCOL is ${protocol.slice(0, 40)}; only ${protobuf} is known, at port 4318 of most collectors.`;
  return undefined;
}

/** The first variable that has a value; blank means unset. */
const firstIn = (env: Variables, names: readonly string[]): string | undefined =>
  names.map((name) => env[name]?.trim()).find((value) => value);
