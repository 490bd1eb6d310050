// Takes the pictures in docs/images: node dev/pictures.mjs ADDRESS FOLDER, with
// `sexton serve` on the recording of the drill (fixtures/6.18-debian12/drill) at ADDRESS.

import { join } from "node:path";
import { chromium } from "playwright-core";

const [address, folder] = process.argv.slice(2);
const show = (id) => `document.getElementById("${id}").scrollIntoView({ behavior: "instant" })`;

const PICTURES = [
  { name: "page-light", theme: "light", width: 1280, height: 800, hash: "", act: "" },
  {
    name: "page-dark",
    theme: "dark",
    width: 1280,
    height: 800,
    hash: "",
    act: `document.querySelector('[data-finding^="NIC001"]').click(); setTimeout(() => ${show("timeline")}, 400)`,
  },
  {
    name: "page-difference",
    theme: "light",
    width: 1280,
    height: 800,
    hash: "#by=core&value=1&selection=1794786102000000-1794786105000000&base=1794786119000000-1794786122000000",
    act: show("heatmap"),
  },
  { name: "page-phone", theme: "dark", width: 390, height: 844, hash: "", act: "" },
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
for (const { name, theme, width, height, hash, act } of PICTURES) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
  await page.goto(new URL(hash, address).href);
  await page.locator(".chain .card").first().waitFor();
  await page.waitForTimeout(1500);
  if (act) await page.evaluate(act);
  await page.waitForTimeout(2500);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.close();
}
await browser.close();
