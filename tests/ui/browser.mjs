// A real Chromium, and what a story looks at in it.
import {readFile} from "node:fs/promises";
import {createRequire} from "node:module";
import assert from "node:assert/strict";
import {chromium} from "playwright-core";

const patienceMs = 60000; // with a machine that does other work; what has to be quick says so itself

const require = createRequire(import.meta.url);

export async function openBrowser() {
  // Without its sandbox, because tests run as root in containers; it shows nothing but what the test itself serves.
  return chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"],
  });
}

// A page that fails its story if anything is written to the console as an error, is thrown, is asked of another origin,
// or violates the Content-Security-Policy.
export async function openPage(browser, url, options = {}) {
  const {expected = /^$/, before, ...contextOptions} = options;
  const context = await browser.newContext({
    viewport: {width: 1360, height: 900},
    reducedMotion: "reduce",
    colorScheme: "light",
    ...contextOptions,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(patienceMs);
  const complaints = [];
  page.on(
    "console",
    (message) => message.type() === "error" && !expected.test(message.text()) && complaints.push(message.text()),
  );
  page.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !/^(blob|data):/.test(request.url()))
      complaints.push(`asked of elsewhere: ${request.url()}`);
  });
  await before?.(page);
  await page.goto(url);
  page.complaints = complaints;
  return page;
}

export async function close(page) {
  await page.unrouteAll({behavior: "ignoreErrors"});
  assert.deepEqual(page.complaints, []);
  await page.context().close();
}

export function level(page) {
  return page.evaluate(() => document.documentElement.dataset.level);
}

// Serious and critical findings of axe-core.
export async function accessibilityFindings(page) {
  await page.evaluate(await readFile(require.resolve("axe-core/axe.min.js"), "utf8"));
  const found = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ["violations"]}));
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map(
      (one) =>
        `${one.id}: ${one.nodes
          .slice(0, 3)
          .map((node) => `${node.target} ${node.any[0]?.message ?? ""}`)
          .join(" | ")}`,
    );
}

export async function screenshot(page, name, options = {}) {
  const directory = process.env.CHORUS_SCREENSHOTS;
  if (directory) await page.screenshot({path: `${directory}/${name}.png`, ...options});
}
