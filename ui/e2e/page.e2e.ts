// The page of `sexton serve` on a recording of the drill, in a real browser.

import { describe, expect, inject, test } from "vitest";
import { LOOKS, lookOf } from "./looks";
import { drag, everywhere, on, open, percentIn, rangeOf, shareOf, stateOf, withBrowser } from "./stage";

/** What the drill does: a reader walks memory cgroups and holds a core. */
const GUILTY = "memory_stat_show|memcg1_stat_format|mem_cgroup_node_nr_lru_pages|memcg_numa_stat_show";
const SECOND = 1_000_000;

withBrowser();

interface Event {
  at: number;
}

/** Of the device that the drill makes: others on that machine were not part of it. */
async function resets(): Promise<Event[]> {
  const answer = await fetch(new URL("api/v1/sources/main/tiles?lane=nic.events", inject("address")));
  const { tiles } = (await answer.json()) as { tiles: { events: (Event & { text: string })[] }[] };
  return tiles[0].events.filter((event) => event.text.includes("drill-far"));
}

describe("the verdict", () => {
  everywhere("draws the chain from cause to symptom, with figures and how sure it is", "", async (page) => {
    const chain = page.locator(".chain").first();
    const codes = await chain.locator(".card .code").allTextContents();
    expect(codes).toEqual(["CPU002", "CPU001", "NET001", "NIC001"]);
    expect(await chain.locator(".arrow").count()).toBe(codes.length - 1);
    for (const figure of await chain.locator(".card .figure").allTextContents()) expect(figure).not.toBe("");
    for (const sure of await chain.locator(".card .confidence").allTextContents()) expect(sure).toMatch(/\d+ % \w+/);
    expect(await page.locator(".state").textContent()).toContain("Root cause found");
  });

  everywhere("shows the evidence for, against and missing, and a command to copy", "", async (page) => {
    await page.locator('[data-finding^="CPU002"]').first().click();
    const detail = page.locator(".detail");
    const columns = detail.locator("> .evidence .stance");
    expect(await columns.first().locator("h3").textContent()).toBe("+ Evidence for");
    for (const column of await columns.all()) expect(await column.locator("li").count()).toBeGreaterThan(0);
    await detail.locator(".command button").first().click();
    const command = await detail.locator(".command code").first().textContent();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(command);
  }, { permissions: ["clipboard-read", "clipboard-write"] });

  test("a click on the reset shows the guilty second", async () => {
    const [reset] = await resets();
    await on(await open(), async (page) => {
      await page.locator('[data-finding^="NIC001:drill-far"]').first().click();
      const state = await stateOf(page);
      const [from, to] = rangeOf(state.get("selection"));
      expect(from).toBeLessThan(reset.at);
      expect(Math.abs(to - reset.at)).toBeLessThan(SECOND);
      const [left, right] = rangeOf(state.get("window"));
      expect(left).toBeLessThanOrEqual(from);
      expect(right).toBeGreaterThanOrEqual(to);
      await page.locator("#flame").scrollIntoViewIfNeeded();
      expect(percentIn(await shareOf(page, GUILTY))).toBeGreaterThan(60);
    });
  });

  everywhere("a click on a link moves the time line and shows why", "", async (page) => {
    const before = await page.locator(".window-words").textContent();
    await page.locator(".chain").first().locator(".arrow").last().click();
    expect(await page.locator(".detail h2").textContent()).toContain("leads to");
    const state = await stateOf(page);
    expect(state.get("selection")).not.toBe(null);
    expect(await page.locator(".window-words").textContent()).not.toBe(before);
  });

  test.each(LOOKS)("what is open closes by Esc, by a second click and by its button, and is in the address, %s, %s", async (...look) => {
    let link = "";
    await on(await open("", lookOf(look)), async (page) => {
      const arrow = page.locator(".chain").first().locator(".arrow").first();
      const card = page.locator('[data-finding^="CPU001"]').first();
      for (const chosen of [arrow, card]) {
        await chosen.click();
        await page.locator(".detail").waitFor();
        await page.keyboard.press("Escape");
        expect(await page.locator(".detail").count()).toBe(0);
        await chosen.click();
        await chosen.click();
        expect(await page.locator(".detail").count()).toBe(0);
        await chosen.click();
        await page.locator(".detail").getByRole("button", { name: "Close" }).click();
        expect(await page.locator(".detail").count()).toBe(0);
      }
      await arrow.click();
      await stateOf(page);
      link = new URL(page.url()).hash;
    });
    await on(await open(link, lookOf(look)), async (page) => {
      expect(await page.locator(".detail h2").textContent()).toContain("CPU002:drill-reader leads to CPU001");
    });
  });
});

describe("the time line", () => {
  everywhere("a click on the reset's mark selects the second before it", "", async (page) => {
    const [reset] = await resets();
    const lane = page.locator('[data-lane="nic.events"] canvas');
    await lane.scrollIntoViewIfNeeded();
    await page.waitForTimeout(500);
    const box = await lane.boundingBox();
    const all = await (await fetch(new URL("api/v1/sources/main", inject("address")))).json();
    if (!box) throw new Error("the lane is not on the page");
    const x = box.x + ((reset.at - all.from) / (all.to - all.from)) * box.width;
    await page.mouse.click(x, box.y + box.height / 2);
    const [from, to] = rangeOf((await stateOf(page)).get("selection"));
    expect(to).toBe(reset.at);
    expect(to - from).toBe(SECOND);
    expect(await page.locator(".timeline .said").textContent()).toContain("drill-far");
  });

  test("zooms with the wheel and pans with a drag", async () => {
    await on(await open(), async (page) => {
      const lane = page.locator('[data-lane="cores.worst"] canvas');
      await lane.scrollIntoViewIfNeeded();
      const box = await lane.boundingBox();
      if (!box) throw new Error("the lane is not on the page");
      await page.mouse.move(box.x + box.width / 2, box.y + 5);
      await page.keyboard.down("Control");
      for (let i = 0; i < 5; i++) await page.mouse.wheel(0, -300);
      await page.keyboard.up("Control");
      const zoomed = rangeOf((await stateOf(page)).get("window"));
      expect(zoomed[1] - zoomed[0]).toBeLessThan(10 * SECOND);
      await drag(page, lane, [0.3, 0.5], [0.6, 0.5]);
      const panned = rangeOf((await stateOf(page)).get("window"));
      expect(panned[0]).toBeLessThan(zoomed[0]);
      expect(Math.abs(panned[1] - panned[0] - (zoomed[1] - zoomed[0]))).toBeLessThan(1000);
    });
  });

  everywhere("draws what was seen and hatches what was not", "", async (page) => {
    // How many pixels of a lane are painted at all.
    const painted = (lane: string) =>
      page.locator(`[data-lane="${lane}"] canvas`).evaluate((element) => {
        const canvas = element as HTMLCanvasElement;
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
        let n = 0;
        for (let i = 3; i < data.length; i += 4) n += Number(data[i] > 0);
        return n / (data.length / 4);
      });
    for (const lane of ["cores.worst", "units.restarts", "containers.births"]) {
      await page.locator(`[data-lane="${lane}"]`).scrollIntoViewIfNeeded();
      await page.waitForTimeout(400);
    }
    // No systemd runs on that machine: a gap all along, which is neither blank nor full.
    const gap = await painted("units.restarts");
    expect(gap).toBeGreaterThan(0.1);
    expect(gap).toBeLessThan(0.8);
    expect(await painted("cores.worst")).toBeGreaterThan(0.9);
  });
});

describe("the heat map and the flame graph", () => {
  everywhere("a drag gives the flame graph of that range, with the guilty function", "#by=core&value=0", async (page) => {
    const canvas = page.locator("#heatmap canvas");
    await canvas.scrollIntoViewIfNeeded();
    await page.waitForTimeout(600);
    await drag(page, canvas, [0.5, 0.8], [0.6, 0.3]);
    const [from, to] = rangeOf((await stateOf(page)).get("selection"));
    expect(to - from).toBeGreaterThan(SECOND);
    expect(to - from).toBeLessThan(8 * SECOND);
    await page.locator("#flame").scrollIntoViewIfNeeded();
    expect(percentIn(await shareOf(page, GUILTY))).toBeGreaterThan(60);
    expect(await page.locator(".flame-words").textContent()).toContain("core 0");
  });

  test("a second drag with Shift gives the difference", async () => {
    await on(await open("#by=core&value=0"), async (page) => {
      const canvas = page.locator("#heatmap canvas");
      await canvas.scrollIntoViewIfNeeded();
      await page.waitForTimeout(600);
      await drag(page, canvas, [0.5, 0.8], [0.6, 0.3]);
      await drag(page, canvas, [0.2, 0.8], [0.3, 0.3], "Shift");
      const state = await stateOf(page);
      expect(state.get("base")).not.toBe(state.get("selection"));
      await page.locator("#flame").scrollIntoViewIfNeeded();
      await page.locator(".flame-words", { hasText: "compared with" }).waitFor();
      expect(await page.locator(".flame .legend").textContent()).toBe("moreas beforeless");
      expect(await shareOf(page, GUILTY)).toMatch(/%.*before [\d.]+ %/);
      await page.locator("#end-comparison").click();
      expect((await stateOf(page)).get("base")).toBe(null);
    });
  });

  everywhere("zooms into a frame, names its callers and goes out again", "#by=core&value=0", async (page) => {
    const canvas = page.locator("#flame canvas");
    await canvas.scrollIntoViewIfNeeded();
    await page.locator(".flame-words", { hasText: "samples" }).waitFor();
    await page.waitForTimeout(300);
    await canvas.click({ position: { x: 20, y: 18 * 4 + 6 } });
    const crumbs = page.locator(".crumbs button");
    expect(await crumbs.count()).toBe(5);
    expect(await crumbs.nth(1).textContent()).toContain("drill-reader");
    const link = new URL(page.url()).hash;
    await page.getByRole("button", { name: "Zoom out", exact: true }).last().click();
    expect(await crumbs.count()).toBe(1);
    await page.goto(new URL(link, inject("address")).href);
    await page.reload();
    await page.locator("#flame").scrollIntoViewIfNeeded();
    await crumbs.nth(1).waitFor();
    expect(await crumbs.nth(1).textContent()).toContain("drill-reader");
  });

  everywhere("functions are a table, and one stands between its callers and callees", "#by=core&value=0&tab=top", async (page) => {
    await page.locator("#flame").scrollIntoViewIfNeeded();
    const rows = page.locator(".top-functions > .wide tbody tr");
    await rows.first().waitFor();
    const shares = (await rows.locator("td:nth-child(2)").allTextContents()).map(percentIn);
    expect(shares).toEqual([...shares].sort((a, b) => b - a));
    await page.locator("#flame-search").fill("^memory_stat_show$");
    await page.waitForTimeout(300);
    await rows.first().getByRole("button").click();
    const region = page.getByRole("region", { name: "Callers and callees of memory_stat_show" });
    expect(await region.locator("h3").allTextContents()).toEqual(["Callers", "Callees"]);
    expect(await region.locator("tbody tr").count()).toBeGreaterThan(1);
    expect((await stateOf(page)).get("func")).toBe("memory_stat_show");
  });

  test("counts one function while its name is typed", async () => {
    await on(await open(), async (page) => {
      await page.locator("#heatmap canvas").scrollIntoViewIfNeeded();
      await page.getByLabel("Count samples of").selectOption("function");
      const field = page.getByLabel("Function, as a regular expression");
      await field.pressSequentially("memcg1_stat_format", { delay: 60 });
      expect(await field.inputValue()).toBe("memcg1_stat_format");
      await page.locator(".flame-words", { hasText: "of function memcg1_stat_format" }).waitFor();
      expect((await stateOf(page)).get("value")).toBe("memcg1_stat_format");
      const known = await (
        await fetch(new URL("api/v1/sources/main/heatmap?by=function&value=memcg1_stat_format", inject("address")))
      ).json();
      expect(await page.locator(".flame-words").textContent()).toContain(
        `${known.total.toLocaleString("en-US")} samples`,
      );
    });
  });

  test("a link shows the same view to others", async () => {
    const first = await open("#by=core&value=0&search=memcg&upright=1");
    let link = "";
    await on(first, async (page) => {
      await page.locator('[data-finding^="NIC001:drill-far"]').first().click();
      await stateOf(page);
      link = new URL(page.url()).hash;
    });
    await on(await open(link), async (page) => {
      await page.locator("#flame").scrollIntoViewIfNeeded();
      expect(await page.locator(".card[aria-expanded=true] .code").first().textContent()).toBe("NIC001");
      expect(await page.locator("#flame-search").inputValue()).toBe("memcg");
      expect(await page.getByRole("button", { name: "As icicles" }).count()).toBe(1);
      expect((await stateOf(page)).get("selection")).toBe(new URLSearchParams(link.slice(1)).get("selection"));
    });
  });
});

everywhere("zombies are listed by origin, unit and pinning file", "", async (page) => {
  await page.locator("#zombies").scrollIntoViewIfNeeded();
  const table = page.locator("#zombies .records").first();
  await table.waitFor();
  expect(await table.locator("tbody tr").first().textContent()).toContain("sexton-drill");
  expect(await table.locator(".pins").first().textContent()).toMatch(/^pages: [\d,]+ of files/);
  await page.getByRole("button", { name: "By pinning file" }).click();
  expect(await table.locator("tbody tr").first().textContent()).toContain("agent.log");
  await page.getByRole("button", { name: "By unit" }).click();
  expect(await table.locator("th").first().textContent()).toBe("Unit");
  // Units, and what belongs to none that was named, are all of the dying.
  const dying = await page.locator("#zombies .number-box strong").first().textContent();
  const cells = await table.locator("tbody tr td:nth-child(2)").allTextContents();
  const sum = cells.reduce((sum, cell) => sum + Number(cell.replace(/,/g, "")), 0);
  expect(sum).toBe(Number(dying?.replace(/,/g, "")));
});
