/* A button on each block of code that copies it; of a console or prompt the commands alone, without what they print. */

const HERE = /<<\s*'?(\w+)'?/;

/** Return the commands of a console block, with their here-documents and continued lines. */
function commandsOf(text) {
  const lines = text.split("\n");
  const commands = [];
  for (let at = 0; at < lines.length; at++) {
    if (!/^\$ \S/.test(lines[at])) continue;
    const command = [lines[at].slice(2)];
    const here = HERE.exec(lines[at]);
    const goesOn = () => (here ? command.at(-1) !== here[1] : command.at(-1).endsWith("\\"));
    while (goesOn() && at + 1 < lines.length) command.push(lines[++at]);
    commands.push(command.join("\n"));
  }
  return commands;
}

/** Return the code of a block of Python, an empty line behind each statement that its prompt only ends with one. */
function codeOf(text) {
  if (!text.startsWith(">>> ")) return /\n[ \t]+.*\n$/.test(text) ? text + "\n" : text;
  const statements = text.match(/^>>> .*\n(\.\.\.( .*)?\n)*/gm).map((lines) => lines.replace(/^(>>>|\.\.\.) ?/gm, ""));
  return statements.map(codeOf).join("");
}

function addButton(block) {
  const isConsole = block.closest(".highlight-console") !== null;
  const isPython = block.closest(".highlight-python, .doctest") !== null;
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", isConsole ? "Copy the commands" : "Copy the code");
  button.addEventListener("click", async () => {
    const text = block.querySelector("pre").textContent;
    await navigator.clipboard.writeText(isConsole ? commandsOf(text).join("\n") + "\n" : isPython ? codeOf(text) : text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.append(button);
}

if (typeof document !== "undefined") {
  document.addEventListener("DOMContentLoaded", () => {
    if (!navigator.clipboard) return; // it is there for pages from https and this machine
    document.querySelectorAll("div[class*=highlight-]:not(.highlight-output) > .highlight").forEach(addButton);
  });
} else {
  module.exports = { codeOf, commandsOf };
}
