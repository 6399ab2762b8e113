"""One catalog in front of several metastores: rules, merged listings, answers passed through."""
