//! Writes batches of rows to a new table with hudi-rs: `batches DIRECTORY cow|mor record|simple`, where the last word is the
//! index; then commands on stdin, one a line, each answered by one line:
//!
//!     upsert FILE     the rows of an Arrow IPC file are written
//!     delete FILE     the rows of the keys in the file's column `id` are deleted
//!
//! An answer begins with `ok` or `err`.

use std::fs::File;
use std::io::{BufRead, Write};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::FileReader;
use hudi_core::config::table::TableTypeValue;
use hudi_core::index::HoodieKey;
use hudi_core::table::Table;

async fn created(arguments: &[String]) -> Result<Table, String> {
    let [directory, kind, index] = arguments else {
        return Err("three arguments: DIRECTORY cow|mor record|simple".to_string());
    };
    let kind = if kind == "mor" { TableTypeValue::MergeOnRead } else { TableTypeValue::CopyOnWrite };
    let table = Table::create(directory.as_str())
        .with_table_name("orders")
        .with_table_type(kind)
        .with_record_key_fields(["id"])
        .with_record_index_enabled(index == "record")
        .create()
        .await;
    table.map_err(|error| error.to_string())
}

fn batches_of(path: &str) -> Result<Vec<RecordBatch>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = FileReader::try_new(file, None).map_err(|error| error.to_string())?;
    reader.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn keys_of(batches: &[RecordBatch]) -> Vec<HoodieKey> {
    let key = |id: &i64| HoodieKey { record_key: id.to_string(), partition_path: String::new() };
    let ids = |batch: &RecordBatch| batch["id"].as_primitive::<Int64Type>().values().iter().map(key).collect::<Vec<_>>();
    batches.iter().flat_map(ids).collect()
}

async fn carried_out(table: &mut Table, line: &str) -> Result<(), String> {
    let (command, path) = line.split_once(' ').ok_or("a command has a file")?;
    let batches = batches_of(path)?;
    let result = match command {
        "upsert" => table.upsert(batches).await,
        "delete" => table.delete_keys(keys_of(&batches)).await,
        _ => return Err("no such command".to_string()),
    };
    result.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut table = created(&arguments).await.expect("a new table");
    for line in std::io::stdin().lock().lines() {
        match carried_out(&mut table, &line.expect("a line of text")).await {
            Ok(()) => println!("ok"),
            Err(why) => println!("err {}", why.replace('\n', " ")),
        }
        std::io::stdout().flush().expect("stdout is open");
    }
}
