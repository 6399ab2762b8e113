//! Writes rows of one table with hudi-rs: `turns DIRECTORY`, then commands on stdin, one a line, each answered by one line:
//!
//!     upsert KEY TEXT ORDER     the row of a key is written
//!     delete KEY                the row of a key is deleted
//!
//! An answer begins with `ok` or `err`. The columns are `id` (text, the key), `v` (text) and `ts` (bigint, the order).

use std::io::{BufRead, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use hudi_core::table::Table;

fn row(key: &str, text: &str, order: i64) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("v", DataType::Utf8, true),
        Field::new("ts", DataType::Int64, true),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![key])),
        Arc::new(StringArray::from(vec![text])),
        Arc::new(Int64Array::from(vec![order])),
    ];
    RecordBatch::try_new(schema, columns).expect("columns of one length")
}

async fn carried_out(directory: &str, words: &[&str]) -> Result<(), String> {
    let mut table = Table::new(directory).await.map_err(|error| error.to_string())?;
    let result = match words {
        ["upsert", key, text, order] => {
            let order = order.parse().map_err(|_| "the order is no number".to_string())?;
            table.upsert([row(key, text, order)]).await
        }
        ["delete", key] => table.delete(&format!("id = '{key}'")).await,
        _ => return Err("no such command".to_string()),
    };
    result.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let directory = std::env::args().nth(1).expect("the directory of a table");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line of text");
        let words: Vec<&str> = line.split_whitespace().collect();
        match carried_out(&directory, &words).await {
            Ok(()) => println!("ok"),
            Err(why) => println!("err {}", why.replace('\n', " ")),
        }
        std::io::stdout().flush().expect("stdout is open");
    }
}
