// Unpacks the scripts of the page, and says so where a browser cannot.

"use strict";

// What the element of this id has in it, packed by zlib.
const unpacked = async (id) => {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
};

const refused = (error) => {
  document.getElementById("said").hidden = false;
  document.getElementById("said-text").textContent = `This browser cannot run the page: ${error.message}`;
};

unpacked("script")
  .then((packed) => packed.text())
  .then((text) => document.body.append(Object.assign(document.createElement("script"), { textContent: text })))
  .catch(refused);
