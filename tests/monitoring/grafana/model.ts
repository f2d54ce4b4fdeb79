// What Grafana says that a dashboard is (@grafana/schema), as JSON has it.
import type {AnnotationQuery, Dashboard, Panel, RowPanel} from "@grafana/schema";
import type * as barGauge from "@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen.d.ts";
import type * as heatmap from "@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen.d.ts";
import type * as stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts";
import type * as table from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen.d.ts";
import type * as timeSeries from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts";

// Enumerations are their values, here: those of strings as texts, those of numbers as they are.
type Json<T> = T extends string
  ? `${T}`
  : T extends Array<infer Item>
    ? Json<Item>[]
    : T extends object
      ? {[Key in keyof T]: Json<T[Key]>}
      : T;
// What a panel does not say has Grafana's default.
type Said<T> = T extends Array<infer Item> ? Said<Item>[] : T extends object ? {[Key in keyof T]?: Said<T[Key]>} : T;

// A query to Prometheus: what its editor writes (the schema leaves targets open).
interface Query {
  refId: string;
  expr: string;
  legendFormat?: string;
  instant?: boolean;
  range?: boolean;
  format?: "time_series" | "table" | "heatmap";
}

// A panel whose kind has options of its own.
type Shown<Kind extends string, Options, Custom = never> = Omit<
  Json<Panel>,
  "type" | "options" | "fieldConfig" | "targets"
> & {
  type: Kind;
  targets: Query[];
  options?: Json<Said<Options>>;
  fieldConfig: Omit<NonNullable<Json<Panel>["fieldConfig"]>, "defaults"> & {
    defaults: Omit<NonNullable<Json<Panel>["fieldConfig"]>["defaults"], "custom"> & {custom?: Json<Said<Custom>>};
  };
};

type AnyPanel =
  | Shown<"timeseries", timeSeries.Options, timeSeries.FieldConfig>
  | Shown<"stat", stat.Options>
  | Shown<"bargauge", barGauge.Options>
  | Shown<"table", table.Options, table.FieldConfig>
  | Shown<"heatmap", heatmap.Options, heatmap.FieldConfig>
  | (Json<RowPanel> & {targets?: []});

// Annotations from Prometheus have fields that its data source adds.
type Annotation = Json<AnnotationQuery> & {expr: string; step: string; titleFormat: string; textFormat: string};

export type ChorusDashboard = Omit<Json<Dashboard>, "panels" | "annotations"> & {
  panels: AnyPanel[];
  annotations: {list: Annotation[]};
};
