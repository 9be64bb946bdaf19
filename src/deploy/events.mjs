/** What happens in a dragoman server: the states of its accounts, and each request with its cost. It ends with the server. */
export async function* eventsOf(url) {
  const { body } = await fetch(`${url}/api/admin/live`);
  let text = "";
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const events = (text + chunk).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
      if (name) yield { name, ...JSON.parse(data) };
    }
  }
}

for await (const event of eventsOf(process.argv[2] ?? "http://127.0.0.1:4141")) {
  if (event.name === "accounts")
    for (const { account_id, state, reason, runtime, unit } of event.accounts)
      console.log(`${account_id} is ${reason ?? state}: ${runtime.remaining ?? "?"} ${unit} left`);
  if (event.name === "finished")
    console.log(`${event.upstream_model}: ${event.cost === null ? "?" : event.cost / 1e9} ${event.cost_unit}`);
}
