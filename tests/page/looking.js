// What tests ask of a page in a browser; each function returns a list.

// What is cut off, sticks out or overlaps.
function faults() {
  const faults = [];
  const seen = element => { const box = element.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  const words = element => (element.textContent || "").trim().slice(0, 40);
  const scrolls = element => { for (let e = element; e; e = e.parentElement)
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "auto") return true; return false; };
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is wider than the window");
  for (const text of document.querySelectorAll("svg text")) {
    if (!seen(text)) continue;
    const box = text.getBoundingClientRect(), svg = text.closest("svg").getBoundingClientRect();
    if (box.left < svg.left - 1 || box.right > svg.right + 1 || box.top < svg.top - 1 || box.bottom > svg.bottom + 1)
      faults.push("outside of its drawing: " + words(text));
    const rect = text.parentElement.querySelector("rect");
    if (text.closest(".graph") && rect) {
      const around = rect.getBoundingClientRect();
      if (box.left < around.left || box.right > around.right) faults.push("wider than its box: " + words(text));
    }
  }
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")].filter(seen);
    texts.forEach((one, index) => texts.slice(index + 1).forEach(other => {
      const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 3) faults.push("overlap: " + words(one) + " and " + words(other));
    }));
  }
  for (const element of document.querySelectorAll("h1,h2,h3,h4,p,td,th,dd,dt,summary,figcaption,.headline,pre,math")) {
    if (!seen(element) || scrolls(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.right > innerWidth + 1 || box.left < -1) faults.push("sticks out: " + words(element));
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth && getComputedStyle(element).overflowX !== "auto")
      faults.push("cut off: " + words(element));
  }
  const blocks = [...document.querySelectorAll("header > *, main > section, section > *, .headline, figure, article")].filter(seen);
  blocks.forEach((one, index) => blocks.slice(index + 1).forEach(other => {
    if (one.contains(other) || other.contains(one)) return;
    const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
      faults.push("overlap: " + words(one) + " and " + words(other));
  }));
  return faults;
}

// For each plot, how many marks it has that can be seen.
function marks() {
  return [...document.querySelectorAll(".plot svg")].map(svg =>
    [...svg.querySelectorAll('[id*="-mark"] path, [id*="-mark"] use, path[id*="-mark"]')].filter(mark => {
      const box = mark.getBoundingClientRect(), plot = svg.getBoundingClientRect();
      return box.width + box.height > 2 && box.right > plot.left && box.left < plot.right;
    }).length);
}

// Text whose contrast with what is behind it is below 3.
function pale() {
  const linear = part => { part /= 255; return part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4; };
  const light = colour => { const [r, g, b] = colour.match(/[\d.]+/g).map(Number).map(linear); return .2126*r + .7152*g + .0722*b; };
  const behind = element => { for (let e = element; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor; if (!/^rgba\(.*, 0\)$|transparent/.test(colour)) return colour; } return "rgb(255,255,255)"; };
  return [...document.querySelectorAll("p,td,th,dd,dt,h1,h2,h3,summary,.code span,.headline span,.key,.plot text")]
    .filter(element => element.getBoundingClientRect().width > 0 && element.textContent.trim())
    .map(element => { const style = getComputedStyle(element);
      const a = light(element.closest("svg") ? style.fill : style.color), b = light(behind(element));
      return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), element.textContent.trim().slice(0, 30)]; })
    .filter(([contrast]) => contrast < 3);
}
