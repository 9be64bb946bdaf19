// Finds sections of the documents by words. The sections are loaded when somebody searches for the first time.
import MiniSearch from "./minisearch.js";

const words = document.getElementById("words");
const found = document.getElementById("found");
words.closest("search").hidden = false;

let ready;
const load = async () => {
  const search = new MiniSearch({
    fields: ["heading", "text"],
    storeFields: ["page", "heading"],
    searchOptions: { boost: { heading: 3 }, prefix: true, fuzzy: 0.15 },
  });
  search.addAll(await (await fetch("search.json")).json());
  return search;
};

words.addEventListener("input", async () => {
  ready ??= load();
  const search = await ready;
  const results = words.value.trim() === "" ? [] : search.search(words.value).slice(0, 8);
  found.replaceChildren(
    ...results.map(({ id, page, heading }) => {
      const link = document.createElement("a");
      link.href = id;
      link.textContent = heading === page ? heading : `${page}: ${heading}`;
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== words) {
    event.preventDefault();
    words.focus();
  }
  if (event.key === "Escape") {
    words.value = "";
    found.replaceChildren();
  }
});
