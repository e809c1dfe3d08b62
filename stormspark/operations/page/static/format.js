// Numbers and times for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value) {
  if (value === null || value === undefined) return "–";
  return whole.format(value);
}

// many(1, "task") -> 1 task
export function many(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function rate(value) {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && value < 10) return value.toFixed(value < 1 ? 2 : 1);
  return short(value);
}

// 12,345 -> 12.3k: four letters at most, for graphs and axes.
export function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 10000) return Number.isInteger(value) || size >= 100 ? whole.format(value) : String(Number(value.toPrecision(3)));
  for (const [limit, by, unit] of [[1e6, 1e3, "k"], [1e9, 1e6, "M"], [Infinity, 1e9, "G"]]) {
    if (size < limit) return `${Number((value / by).toPrecision(3))}${unit}`;
  }
}

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 10000) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 100) return `${whole.format(value)} ms`;
  return `${Number(value.toPrecision(3))} ms`;
}

export function share(value) {
  return value === null || value === undefined ? "–" : `${Math.round(value * 100)} %`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, size] of [["GB", 2 ** 30], ["MB", 2 ** 20], ["KB", 2 ** 10]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  }
  return `${whole.format(value)} B`;
}

export function lasted(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const all = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes] = [Math.floor(all / 86400), Math.floor(all / 3600) % 24, Math.floor(all / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  if (minutes) return `${minutes} min ${all % 60} s`;
  return `${all} s`;
}

export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString();
}

export function dated(seconds) {
  return new Date(seconds * 1000).toLocaleString();
}
